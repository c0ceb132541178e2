#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make directory DST equal to SRC, touching only the files that differ.

Files that are equal keep their times in DST, so a build there does only the
work the change asks for. Each file is replaced by a rename; to be stopped half
way and run again does no harm. --keep names paths in DST to leave alone.
"""
import argparse
import filecmp
import os
import shutil
import sys


def entries(top, keep):
    """All files, links and directories below top, as relative paths."""
    found = {}
    for where, dirs, files in os.walk(top):
        for name in list(dirs) + files:
            path = os.path.join(where, name)
            rel = os.path.relpath(path, top)
            if rel in keep or name == '__pycache__':
                if name in dirs:
                    dirs.remove(name)
                continue
            is_dir = os.path.isdir(path) and not os.path.islink(path)
            found[rel] = 'dir' if is_dir else 'file'
    return found


def same(a, b):
    """Are two existing paths the same file, link or mode?"""
    if os.path.islink(a) or os.path.islink(b):
        return (os.path.islink(a) and os.path.islink(b)
                and os.readlink(a) == os.readlink(b))
    if (os.stat(a).st_mode ^ os.stat(b).st_mode) & 0o111:
        return False
    return filecmp.cmp(a, b, shallow=False)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def replace(src, dst):
    """Put a copy of src at dst, with the time of now."""
    tmp = dst + '.tt-tmp'
    remove(tmp)
    shutil.copy2(src, tmp, follow_symlinks=False)
    os.utime(tmp, follow_symlinks=False)
    os.replace(tmp, dst)


def sync(src, dst, keep):
    new, old = entries(src, keep), entries(dst, keep)
    changed = 0
    for rel in sorted(old, reverse=True):
        if new.get(rel) != old[rel]:
            remove(os.path.join(dst, rel))
            changed += 1
    for rel, kind in sorted(new.items()):
        a, b = os.path.join(src, rel), os.path.join(dst, rel)
        if kind == 'dir':
            os.makedirs(b, exist_ok=True)
        elif not os.path.lexists(b) or not same(a, b):
            replace(a, b)
            changed += 1
    return changed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--keep', action='append', default=[])
    parser.add_argument('src')
    parser.add_argument('dst')
    args = parser.parse_args()
    print(sync(args.src, args.dst, set(args.keep)), 'paths changed')
    return 0


if __name__ == '__main__':
    sys.exit(main())
