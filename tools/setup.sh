#!/bin/sh
# Makes .venv with the locked packages, once; `make` calls it when the lock is newer than the stamp.
#   PYTHON=/path/to/python  choose the interpreter instead of the first of 3.11, 3.12, 3.13 that is found
#   NEED_MB=9000            free disk space to ask for
set -eu
venv=.venv
stamp=$venv/ready
log=$venv/setup.log
need_mb=${NEED_MB:-9000}

fail() { echo "set-up: $1" >&2; exit 1; }

usable() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        usable "$PYTHON" || fail "PYTHON=$PYTHON is no Python 3.11-3.13; name one that is, or leave PYTHON unset."
        echo "$PYTHON"
        return
    fi
    for candidate in python3.11 python3.12 python3.13 python3 python; do
        if usable "$candidate"; then echo "$candidate"; return; fi
    done
    found=$(python3 --version 2>/dev/null || echo "no python3")
    fail "Python 3.11, 3.12 or 3.13 is needed and $found was found; install one, or name it: make PYTHON=/path/to/python3.11."
}

free_mb() { df -Pk . | awk 'NR == 2 { print int($4 / 1024) }'; }

python=$(find_python)
if [ ! -x $venv/bin/python ] || ! usable $venv/bin/python; then
    [ "$(free_mb)" -ge "$need_mb" ] ||
        fail "the packages need $need_mb MB and $(free_mb) MB are free here; free some space and call make again."
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python lacks venv or ensurepip; install them (Debian, Ubuntu: apt install python3-venv), or set PYTHON=."
    "$python" -m venv --clear $venv
fi

total=$(grep -c == requirements.lock)
echo "set-up: $total locked packages into $venv with $($venv/bin/python --version) (once; log in $log)"

# The lock names every package, so nothing is left to resolve, and two installers share the work: torch with the CUDA
# libraries is most of it. Byte code is written when a module is first imported.
large='^(torch|triton|nvidia|cuda)'
install() {
    grep == requirements.lock | grep $1 "$large" > $venv/$2.txt
    exec $venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --no-deps --no-compile -r $venv/$2.txt >> $log 2>&1
}
: > $log
install -E large & first=$!
install -vE small & second=$!
trap 'kill $first $second 2>/dev/null; exit 130' INT TERM
seconds=0
while kill -0 $first 2>/dev/null || kill -0 $second 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    if [ $((seconds % 15)) -eq 0 ]; then
        found=$(grep -cE '^(Collecting|Requirement already)' $log || true)
        echo "set-up: ${seconds} s, $found of $total packages found, $(du -sm $venv | cut -f1) MB installed"
    fi
done
{ wait $first && wait $second && $venv/bin/python -m pip check >> $log 2>&1; } || {
    grep -v ^WARNING $log | tail -n 5 >&2
    fail "pip could not install the lock (the end of $log is above); check network and disk, then call make again: it resumes."
}

# The checkout itself: a path relative to site-packages, so that a kernel finds jepa_nb from any folder.
echo ../../../.. > "$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/jepa_nb.pth"
cp requirements.lock $stamp
echo "set-up: done in ${seconds} s"
