# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Completion of the `tt` tool's command lines for bash: source it, or install it
# as .../bash-completion/completions/tt.

_tt_commands="info log stats check verify find origin pack unpack branch trace branches
compare-traces syscalls compare disk page group hub watch run-plugin term time console mcp"

# The kinds of events; `tt log --kind` also takes numbers.
_tt_kinds="pio-in pio-out mmio-ld mmio-st tsc msr-rd msr-wr cr8-rd rand cpuid
value hlt tpr-wr intr unhalt ram map cpu-flag cpu-state block cpu-switch ram-fill
landmark window cpuid-table disk check digest mark note finish screen frame time"

_tt_options()
{
    case $1 in
    info|check|time) echo --json --help ;;
    stats) echo --exits --json --help ;;
    disk) echo --disk --version --at --format --force --socket --port --seconds --keep \
               --blocks --files --json --help ;;
    page) echo -o --force --screenshots --qemu --help ;;
    console) echo --from --to --last --json --help ;;
    mcp) echo --symbols --offset --qemu --gdb --help ;;
    group) echo --at-most --at --to --hub --qemu --without --print --exact --frames --json \
        --help ;;
    watch) echo --tcp --agent --script --every --patience --fails --once --help ;;
    hub) echo --group --listen --key-file --delay --jitter --loss --rate --queue --seed \
              --log --members --once --seconds --help ;;
    log) echo --from --to --kind --limit --json --data --device \
             --registers --timeline --help ;;
    verify) echo -j --on --qemu --symbols --once --quiet --json --help ;;
    find) echo --first --last --all --changes --written --monotone --from --to -j --on \
               --limit --symbols --offset --qemu --quiet --json --help ;;
    origin) echo --depth --nodes --within --symbols --offset --qemu --quiet --json --help ;;
    run-plugin) echo --from --to -j --on --out --lcov --symbols --offset --qemu --quiet --json \
                     --help ;;
    pack) echo --with-host --no-checkpoints --scrub --json --help ;;
    unpack) echo --json --help ;;
    trace) echo --from --to --qemu --help ;;
    branches) echo --from --to --limit --symbols --help ;;
    compare-traces) echo --symbols --json --help ;;
    syscalls) echo --process --from --to --limit -j --qemu --json --help ;;
    compare) echo --process --with --by --with-by --symbols --with-symbols --all -j --qemu \
                 --json --help ;;
    branch) echo --at --to --qemu --without --frames --print --help ;;
    term) echo --at --to --qemu --without --print --help ;;
    esac
}

_tt()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$_tt_commands help --version" \
            -- "$word")
        return
    fi
    if [ "$command" = help ]; then
        [ "$COMP_CWORD" != 2 ] ||
            mapfile -t COMPREPLY < <(compgen -W "$_tt_commands" -- "$word")
        return
    fi
    case $before in
    --kind)
        mapfile -t COMPREPLY < <(compgen -W "$_tt_kinds" -- "$word")
        return ;;
    --from|--limit|--last|--offset|--depth|--nodes|--within|-j|--at|--without|--version|--format|--port|--seconds|--disk|\
    --group|--delay|--jitter|--loss|--rate|--queue|--seed|--tcp|--script|--every|--patience|\
    --fails|--hub|--exact) return ;;
    --to) [ "$command" = branch ] || [ "$command" = group ] || return ;;
    esac
    if [[ $word = -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_tt_options "$command")" \
            -- "$word")
    elif [[ $command = disk && $COMP_CWORD = 2 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "list info export serve diff commit" -- "$word")
    elif [[ $command = group && $COMP_CWORD = 2 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "info check cut order checkpoints \
            incidents live compare" -- "$word")
    elif [[ $command = *pack || $command = *trace* || $command = branches ||
            $command = disk || $command = group || $command = hub || $command = watch ||
            $command = run-plugin ||
            $before = --symbols || $before = -o || $before = --out ||
            $before = --qemu || $before = --gdb ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
    fi
}

complete -o filenames -F _tt tt
