# SPDX-License-Identifier: GPL-2.0-or-later
# Shared parts of the scripts beside it: the log, the lock, packages, and an
# apt of our own that reads another release than the machine's.
#
# Sourced, never run. Everything these scripts make stands under build/; the
# machine itself is changed only by installing Debian packages.
# shellcheck shell=bash

set -euo pipefail
export LC_ALL=C.UTF-8
umask 022

TT_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
TT_BUILD=$TT_TOP/build
TT_NAME=${0##*/}
TT_LOG=$TT_BUILD/$TT_NAME.log
TT_LOG_BYTES_MAX=$((32 << 20))

# The only release QEMU and meson are taken from, whatever the machine runs.
TT_SUITE=trixie

# Where and for what the private apt below looks, and where it keeps its lists.
TT_APT_SUITE=$TT_SUITE
TT_APT_ARCH=''
TT_APT_DIR=$TT_BUILD/apt

# What QEMU's build wants; Debian 12 has an older one.
TT_MESON_MIN=1.5

# tt_begin LOCK: open the log and take the lock of this checkout, waiting
# for it. Scripts that call each other take locks of different names.
tt_begin()
{
    local lock=$TT_BUILD/.lock-$1
    mkdir -p "$TT_BUILD"
    if [ -f "$TT_LOG" ] &&
       [ "$(stat -c %s "$TT_LOG")" -gt "$TT_LOG_BYTES_MAX" ]; then
        mv "$TT_LOG" "$TT_LOG.old"
    fi
    printf '\n### %s: scripts/%s, process %s\n' "$(date '+%F %T')" \
        "$TT_NAME" $$ >> "$TT_LOG"
    # Descriptor 9 goes to our children too: a compiler that outlives a
    # killed script keeps the lock until it has ended.
    exec 9>> "$lock"
    if ! flock -n 9; then
        tt_say "Another script is working in $TT_BUILD; waiting for it to finish."
        flock 9
    fi
}

tt_log() { printf '%s\n' "$*" >> "$TT_LOG"; }

tt_say()
{
    printf '%s\n' "$*"
    tt_log "$*"
}

tt_step() { tt_say "* $*"; }

tt_warn()
{
    printf 'warning: %s\n' "$*" >&2
    tt_log "warning: $*"
}

tt_die()
{
    printf '%s: %s\n' "$TT_NAME" "$*" >&2
    tt_log "$TT_NAME: $*"
    exit 1
}

# tt_try COMMAND...: run it with its output in the log only; its status.
tt_try()
{
    tt_log "+ $*"
    "$@" >> "$TT_LOG" 2>&1 < /dev/null
}

# tt_run WHAT COMMAND...: the same, but failing ends the script.
tt_run()
{
    local what=$1 from
    shift
    from=$(stat -c %s "$TT_LOG")
    tt_try "$@" && return
    tail -c "+$((from + 1))" "$TT_LOG" | tail -n 12 >&2
    tt_die "$what failed; the whole output is in $TT_LOG"
}

# tt_as_root COMMAND...: run it as root, by sudo when need be.
tt_as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        tt_die "this needs root, and sudo is not installed; as root, run: $*"
    fi
}

tt_apt_get()
{
    tt_log "+ apt-get $*"
    tt_as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
        "$@" >> "$TT_LOG" 2>&1 < /dev/null
}

tt_missing_packages()
{
    local installed
    installed=$(dpkg-query -W -f='${Package}=${db:Status-Status}\n' "$@" \
        2> /dev/null || true)
    local p
    for p in "$@"; do
        grep -qx -F "$p=installed" <<< "$installed" || echo "$p"
    done
}

# tt_need_packages PACKAGE...: install those that are missing.
tt_need_packages()
{
    local missing
    mapfile -t missing < <(tt_missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    tt_step "Install ${#missing[@]} Debian packages: ${missing[*]}"
    tt_apt_get install --no-install-recommends "${missing[@]}" && return
    # Lists that are absent or out of date are the usual cause.
    tt_apt_get update || tt_die "apt-get update failed; see $TT_LOG"
    tt_apt_get install --no-install-recommends "${missing[@]}" ||
        tt_die "cannot install ${missing[*]}; apt's output is in $TT_LOG"
}

# tt_debian_sites: the archive sites of the machine's own apt configuration,
# one a line, Debian's main archive before others.
tt_debian_sites()
{
    # shellcheck disable=SC2016
    apt-get indextargets \
        --format '$(SITE) $(REPO_URI)|$(ORIGIN)/$(LABEL)' \
        'Created-By: Packages' 2>> "$TT_LOG" |
        awk -F'|' '{ n = split($1, site, " ")
                     for (i = 1; i <= n; i++) {
                         sub("/+$", "", site[i])
                         print ($2 == "Debian/Debian" ? 0 : 1), site[i] } }' |
        sort -s -n -k 1,1 | cut -d ' ' -f 2- | awk '!seen[$0]++'
}

tt_keyring()
{
    local k
    for k in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
        if [ -s "$k" ]; then
            echo "$k"
            return
        fi
    done
    tt_die "Debian's signing keys are missing: install" \
           "debian-archive-keyring"
}

# tt_private_apt DIR: the options that make apt work in DIR alone.
# Left to the machine: proxies, credentials, certificates.
tt_private_apt()
{
    TT_APT=(-q -o "Dir::Etc::SourceList=/dev/null"
            -o "Dir::Etc::SourceParts=$1/parts"
            -o "Dir::Etc::Preferences=/dev/null"
            -o "Dir::Etc::PreferencesParts=/dev/null"
            -o "Dir::State::Lists=$1/lists" -o "Dir::Cache=$1/cache"
            -o "Acquire::Languages=none" -o "Acquire::Retries=3"
            -o "Acquire::http::Timeout=60")
    if [ -n "$TT_APT_ARCH" ]; then
        TT_APT+=(-o "APT::Architecture=$TT_APT_ARCH"
                 -o "APT::Architectures::=$TT_APT_ARCH"
                 -o "Dir::State::status=/dev/null")
    fi
    # Root would fetch as user _apt, who may not enter our directories.
    if [ "$(id -u)" = 0 ]; then
        TT_APT+=(-o "APT::Sandbox::User=root")
    fi
}

tt_try_site()
{
    local site=$1 dir=$2
    rm -rf "$dir"
    mkdir -p "$dir/parts" "$dir/lists/partial" "$dir/cache/archives/partial"
    cat > "$dir/parts/ttvm.sources" <<END
Types: deb deb-src
URIs: $site
Suites: $TT_APT_SUITE
Components: main
Signed-By: $(tt_keyring)
END
    tt_private_apt "$dir"
    tt_try apt-get "${TT_APT[@]}" update || return 1
    # An archive that cannot be reached is only a warning to apt.
    apt-cache "${TT_APT[@]}" showsrc qemu 2>> "$TT_LOG" |
        grep '^Package: qemu$' > /dev/null
}

# tt_open_suite: give TT_APT an apt that reads TT_APT_SUITE from the machine's
# mirror. Lists already fetched are used again.
tt_open_suite()
{
    local dir=$TT_APT_DIR site sites
    if [ -e "$dir/parts/ttvm.sources" ]; then
        tt_private_apt "$dir"
        return
    fi
    mapfile -t sites < <(tt_debian_sites)
    if [ ${#sites[@]} = 0 ]; then
        tt_step "Update apt's package lists (there are none here yet)"
        tt_apt_get update || tt_die "apt-get update failed; see $TT_LOG"
        mapfile -t sites < <(tt_debian_sites)
    fi
    for site in "${sites[@]}"; do
        tt_step "Read the package lists of $TT_APT_SUITE"
        if tt_try_site "$site" "$dir.tmp"; then
            rm -rf "$dir"
            mv -T "$dir.tmp" "$dir"
            tt_private_apt "$dir"
            return
        fi
    done
    tt_die "no archive in apt's configuration carries Debian" \
           "$TT_APT_SUITE (${sites[*]:-none found}); see $TT_LOG"
}

# tt_suite_fetch DIR APT-GET-ARGUMENT...: let that apt work in a new DIR.
tt_suite_fetch()
{
    local dir=$1
    shift
    tt_open_suite
    rm -rf "$dir"
    mkdir "$dir"
    (cd "$dir" && tt_try apt-get "${TT_APT[@]}" "$@") && return
    # Lists of an earlier day may name files that are gone.
    rm -rf "$TT_APT_DIR"
    tt_open_suite
    (cd "$dir" && tt_try apt-get "${TT_APT[@]}" "$@")
}

tt_meson_is_new_enough()
{
    local v
    v=$(/usr/bin/python3 -c 'import mesonbuild.coredata as c
print(c.version)' 2> /dev/null) &&
        dpkg --compare-versions "$v" ge "$TT_MESON_MIN"
}

# tt_need_meson: put a new enough meson in front: the system's, or Debian's
# newer package unpacked under build/.
tt_need_meson()
{
    local dir=$TT_BUILD/meson
    if [ ! -d "$dir" ] && ! tt_meson_is_new_enough; then
        tt_step "Fetch Debian's meson (this system's is older than" \
                "$TT_MESON_MIN, or absent)"
        tt_suite_fetch "$dir.deb" download meson ||
            tt_die "cannot fetch meson; see $TT_LOG"
        rm -rf "$dir.tmp"
        tt_run "unpacking meson" dpkg-deb -x "$dir.deb"/meson_*.deb "$dir.tmp"
        rm -rf "$dir.deb"
        mv -T "$dir.tmp" "$dir"
    fi
    [ -d "$dir" ] || return 0
    export PATH=$dir/usr/bin:$PATH
    export PYTHONPATH=$dir/usr/lib/python3/dist-packages
}

# tt_need_fuzzer: what the fuzz targets are built and measured with.
tt_need_fuzzer()
{
    tt_need_packages clang llvm ninja-build pkgconf python3 \
        libglib2.0-dev libzstd-dev libxxhash-dev
    tt_need_meson
}
