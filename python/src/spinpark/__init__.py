"""Recordings of spinpark as dictionaries and rows.

A *process* is what ``spinpark profile --json`` writes for one: a dictionary, with times in ns. :func:`locks` and
:func:`pairs` make rows of some, for ``pandas.DataFrame`` and the like: times in seconds, and ``None`` for what is not
known.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

__all__ = ["command", "load", "locks", "pairs", "record"]

#: The version of the format that is read here: docs/stability.md.
VERSION = 3


def command():
    """The path of the command: the one that was installed with this module, else one in ``PATH``."""
    # Where pip puts it depends on how it was asked to: a virtual environment, --user, --target.
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    directories = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", "posix_user"),
        os.path.join(beside, "bin"),
    ]
    for directory in directories:
        path = os.path.join(directory, "spinpark")
        if os.access(path, os.X_OK):
            return path
    path = shutil.which("spinpark")
    if path is None:
        raise FileNotFoundError(
            "the command spinpark is neither beside this Python nor in PATH: pip install --force-reinstall spinpark"
        )
    return path


def with_python(arguments):
    """The arguments of a command, with this Python before a script that is to be run."""
    if "--" in arguments:
        at = arguments.index("--") + 1
        if at < len(arguments) and arguments[at].endswith(".py") and not os.access(arguments[at], os.X_OK):
            return arguments[:at] + [sys.executable] + arguments[at:]
    return arguments


def load(path):
    """The processes of a recording: the directory of one, or a file of ``--json``."""
    if os.path.isdir(path):
        path = os.path.join(path, "profile.json")
    with open(path, encoding="utf-8") as file:
        processes = json.load(file)
    for process in processes if isinstance(processes, list) else [processes]:
        if not isinstance(process, dict) or process.get("format") != "spinpark-profile":
            raise ValueError("%s is not a profile in JSON" % path)
        if process.get("version") != VERSION:
            raise ValueError(
                "%s has version %s of the format, and this module reads %d: make it again from the recording "
                "(spinpark report DIR --json)" % (path, process.get("version"), VERSION)
            )
    return processes


def record(program, options=()):
    """Runs a program with its arguments under ``spinpark profile``; the processes of the recording.

    ``options``: of ``spinpark profile``, for example ``["--detail", "full"]``. The program has the input and the
    output of this process; the report is not shown. Raises ``subprocess.CalledProcessError`` if nothing was recorded.
    """
    with tempfile.TemporaryDirectory(prefix="spinpark-") as directory:
        output = os.path.join(directory, "recording")
        arguments = ["profile", *options, "--output", output, "--", *program]
        done = subprocess.run([command()] + with_python(arguments), stderr=subprocess.PIPE)
        try:
            return load(output)
        except FileNotFoundError:
            raise subprocess.CalledProcessError(done.returncode, done.args, stderr=done.stderr) from None


def locks(processes):
    """A row for each lock and role: who waited for it, how often, and how long it was held."""
    return [
        {
            "pid": process["pid"],
            "program": process["program"],
            "lock": lock["label"],
            "kind": lock["kind"],
            "role": role["role"],
            "acquisitions": _known(process, role["acquisitions"]),
            "waits": _known(process, role["contended"]),
            "waited": _seconds(role["wait"]["total"]),
            "longest_wait": _known(process, _seconds(role["wait"]["longest"])),
            "held": _known(process, _seconds(role["hold"]["total"])),
        }
        for process in processes
        for lock in process["locks"]
        for role in lock["roles"]
    ]


def pairs(processes):
    """A row for each function that waited, and the one that held the lock meanwhile."""
    rows = []
    for process in processes:
        labels = {lock["id"]: lock["label"] for lock in process["locks"]}
        for pair in process["pairs"]:
            rows.append(
                {
                    "pid": process["pid"],
                    "lock": labels.get(pair["lock"]),
                    "role": pair["role"],
                    "waiter": _place(process, pair["waiter"]),
                    "holder": _place(process, pair["holder"]),
                    "waits": _known(process, pair["count"]),
                    "waited": _seconds(pair["wait_total"]),
                }
            )
    return rows


def _seconds(nanoseconds):
    return nanoseconds / 1e9


def _known(process, figure):
    """A figure that samples do not give."""
    return None if process.get("sampling") else figure


def _place(process, call_site):
    """``function (file:line)`` of the innermost frame, or None."""
    if call_site is None:
        return None
    frames = process["call_sites"][call_site]["frames"]
    if not frames:
        return None
    frame = frames[0]
    if frame["source"]:
        return "%s (%s:%d)" % (frame["function"], os.path.basename(frame["source"][0]), frame["source"][1])
    return frame["function"]
