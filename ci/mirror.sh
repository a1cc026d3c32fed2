#!/usr/bin/env bash
# Prints the Debian mirror from which this machine has its packages.
set -euo pipefail

mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
    grep -oE '^(URIs:|deb( \[[^]]*\])?) +https?://[^ ]*/debian/?( |$)' | grep -oE 'https?://[^ ]*' | head -n 1 || true)
echo "${mirror:-http://deb.debian.org/debian}"
