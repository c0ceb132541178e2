# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the checks beside it.
# shellcheck shell=bash
set -euo pipefail
cd "$TT_TOP"

# our_files: the files of the repository, one a line. Without git, or where
# git does not trust the owner: everything but what a build leaves.
our_files()
{
    git ls-files --cached --others --exclude-standard 2> /dev/null ||
        find . \( -path ./build -o -name .git -o -name __pycache__ \
            -o -name 'tt-run-*' \) -prune -o -type f -print | sed 's,^\./,,'
}

not_checked() { echo "$*"; exit 77; }
