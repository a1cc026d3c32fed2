#!/usr/bin/env bash
# The two steps of action.yml. Its inputs are the variables SPINPARK_VERSION and GATE_…; GitHub sets the rest.
#
#   ci/action.sh install      installs the command of this checkout, or of a release, for later steps
#   ci/action.sh gate         runs `spinpark gate compare`; undecided is a warning
set -euo pipefail

install() {
    if [[ ${SPINPARK_VERSION:-} == installed ]]; then
        command -v spinpark > /dev/null || {
            echo "::error title=spinpark::version is 'installed', but there is no spinpark in PATH: install it in an earlier step" >&2
            exit 2
        }
        return
    fi
    local root=$RUNNER_TEMP/spinpark
    if [[ -n ${SPINPARK_VERSION:-} ]]; then
        cargo install --locked --root "$root" --git https://github.com/spinpark/spinpark --tag "v$SPINPARK_VERSION" spinpark-cli
    else
        cargo install --locked --root "$root" --path "$(dirname "$0")/../crates/cli"
    fi
    echo "$root/bin" >> "$GITHUB_PATH"
}

# The words of a command line, one a line: quotes as in a shell, and nothing else of it.
words() { xargs printf '%s\n' <<< "$1"; }

gate() {
    local command options arguments=() status=0 verdict
    command=$(words "$GATE_COMMAND")
    if [[ -z $command ]]; then
        echo "::error title=spinpark::the input 'command' is empty: name the new build and its arguments" >&2
        exit 2
    fi
    if [[ -n ${GATE_OPTIONS//[[:space:]]/} ]]; then
        options=$(words "$GATE_OPTIONS")
        readarray -t arguments <<< "$options"
    fi
    [[ -z $GATE_JUNIT ]] || arguments+=(--junit "$GATE_JUNIT")
    [[ -z $GATE_JSON ]] || arguments+=(--json "$GATE_JSON")
    readarray -t command <<< "$command"
    spinpark gate compare --against "$GATE_AGAINST" --markdown "$GITHUB_STEP_SUMMARY" "${arguments[@]}" -- "${command[@]}" || status=$?
    case $status in
        0) verdict=passed ;;
        1) verdict=failed ;;
        3) verdict=undecided status=0 ;; # it has an annotation
        *) exit "$status" ;;
    esac
    echo "verdict=$verdict" >> "$GITHUB_OUTPUT"
    exit "$status"
}

case ${1:-} in
    install | gate) "$1" ;;
    *) sed -n '2,6p' "$0" >&2; exit 2 ;;
esac
