/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `tt` tool: looks into a run without a virtual machine, packs it, and has
 * QEMU verify it. This file is the table of its commands.
 */
#include "tt-tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define JSON { "--json", NULL, false, "print JSON, for programs" }

const ToolCommand tool_commands[] = {
    {
        "info", { "RUN" }, false,
        "Shows what was recorded, and the branches that the run belongs to.",
        { JSON }, tool_info,
    }, {
        "log", { "RUN" }, false,
        "Lists the events of a run, one per line.",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "--kind", "KIND", true, "only events of this kind: a name as printed, or a "
                                      "number" },
            { "--limit", "N", false, "at most N" },
            { "--json", NULL, false, "print one JSON object per line, for programs" },
            { "--data", NULL, false, "with --json: include the data, in hex" },
            { "--device", "ID", false, "show what the driver and device ID said to each "
                                       "other" },
            { "--registers", "FILE", false, "with --device: names of its registers" },
            { "--timeline", NULL, false, "with --device: show it as a plot" },
        }, tool_log,
    }, {
        "stats", { "RUN" }, false,
        "Shows what the bytes of a log are used for, by kind of event.",
        {
            { "--exits", NULL, false, "of a converted run: the log of exits that KVM "
                                      "recorded" },
            JSON,
        }, tool_stats,
    }, {
        "time", { "RUN", "POS" }, false,
        "Shows what time it was at a position of a recording: the host's, the guest's "
        "clock\nand the speed, between the two nearest times that are in the log.",
        { JSON }, tool_time,
    }, {
        "console", { "RUN" }, false,
        "Prints what the guest wrote to its first serial port: the position of each line, "
        "and\nthe line. Colours and movements of the cursor are left out.",
        {
            { "--from", "POS", false, "lines that begin at this position or later" },
            { "--to", "POS", false, "what was written before this position" },
            { "--last", "N", false, "only the last N of these lines" },
            { "--json", NULL, false, "print one JSON object per line, for programs" },
        }, tool_console,
    }, {
        "check", { "RUN" }, false,
        "Reads a whole run and compares its checksums: log, manifest, pages "
        "and\ncheckpoints, marks, disks, and what a branch needs of its parents. It "
        "executes\nnothing; use tt verify to find out whether the run replays exactly.",
        { JSON }, tool_check,
    }, {
        "verify", { "RUN" }, false,
        "Replays a run in QEMU, each interval between two checkpoints on its own, "
        "and\ncompares the result with what was recorded.",
        {
            { "-j", "N", false, "number of QEMU processes at a time (default: 1)" },
            { "--on", "slurm", false, "as tasks of a cluster (default for -j: 16); "
              "slurm,NAME=VALUE: partition, time" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--symbols", "FILE", false, "names for addresses: a vmlinux, or the output "
                                          "of nm or /proc/kallsyms" },
            { "--once", NULL, false, "do not replay the first wrong interval a second "
                                     "time" },
            { "--quiet", NULL, false, "print only what is wrong" },
            JSON,
        }, tool_verify,
    }, {
        "find", { "RUN", "CONDITION" }, false,
        "Finds the positions at which CONDITION becomes true: a C expression of "
        "registers\n($rip), memory (*(u32 *)0x1000) and names (*(u64 *)&jiffies). "
        "EXPRESSION at ADDRESS\nis evaluated only where ADDRESS is executed. QEMU "
        "replays the run for it.",
        {
            { "--first", NULL, false, "only the first position" },
            { "--last", NULL, false, "only the last position" },
            { "--all", NULL, false, "all positions (default)" },
            { "--changes", NULL, false, "find where the value of CONDITION changes" },
            { "--written", NULL, false, "find where the memory of CONDITION is written" },
            { "--monotone", NULL, false, "CONDITION stays true once it is true: bisect, "
                                         "which is fast" },
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position" },
            { "-j", "N", false, "number of QEMU processes at a time (default: 1)" },
            { "--on", "slurm", false, "as tasks of a cluster (default for -j: 16); "
              "slurm,NAME=VALUE: partition, time" },
            { "--limit", "N", false, "at most N (default: 10000)" },
            { "--symbols", "FILE", false, "names: a vmlinux, or the output of nm or "
                                          "/proc/kallsyms" },
            { "--offset", "N", false, "add N to the addresses in FILE: the program was "
                                      "loaded higher" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--quiet", NULL, false, "print no progress, and nothing if nothing was "
                                      "found" },
            JSON,
        }, tool_find,
    }, {
        "origin", { "RUN", "POS", "PLACE" }, false,
        "Says where the value of PLACE at position POS came from: the last write, what it\n"
        "was copied or computed from, and so on, up to an input. PLACE is a register ($rax,\n"
        "$xmm0) or memory (*(u64 *)0x1000, *(u32 *)&name). QEMU replays the run for it.",
        {
            { "--depth", "N", false, "follow through N computations; copies do not count "
                                     "(default: 3)" },
            { "--nodes", "N", false, "at most N writes (default: 100)" },
            { "--within", "N", false, "look for each write in no more than N positions "
                                      "(default: 10000000000)" },
            { "--symbols", "FILE", false, "names, and lines if it has them: a vmlinux, or "
                                          "the output of nm or /proc/kallsyms" },
            { "--offset", "N", false, "add N to the addresses in FILE: the program was "
                                      "loaded higher" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--quiet", NULL, false, "print no progress" },
            JSON,
        }, tool_origin,
    }, {
        "run-plugin", { "RUN", "PLUGIN[,NAME=VALUE...]" }, false,
        "Replays a part of a run with a plugin of QEMU's TCG, which sees that part and no\n"
        "more, and shows what it says. PLUGIN is a file, or count (instructions),\n"
        "functions (instructions by function), stacks (by call stack; both as folded\n"
        "stacks), coverage, or races (of several vCPUs).",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "-j", "N", false, "number of QEMU processes at a time (default 1); each has "
              "a plugin of its own" },
            { "--on", "slurm", false, "as tasks of a cluster (default for -j: 16); "
              "slurm,NAME=VALUE: partition, time" },
            { "--out", "FILE", false, "what the plugin says goes there; must not exist" },
            { "--lcov", "FILE", false, "with coverage and --symbols: lines of source code, "
              "for genhtml" },
            { "--symbols", "FILE", false, "functions for addresses: a vmlinux, or what nm "
              "or /proc/kallsyms print" },
            { "--offset", "N", false, "the program was loaded so much higher than FILE "
              "says" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--quiet", NULL, false, "say only what the plugin says, and what is wrong" },
            { "--json", NULL, false, "for programs: JSON about the part; what the plugin "
              "says with --out only" },
        }, tool_run_plugin,
    }, {
        "pack", { "RUN", "FILE" }, false,
        "Packs a run into one file, with all that a replay needs. What identifies "
        "the\nhost (its name, directories, the command line) is left out unless you ask "
        "for it.",
        {
            { "--with-host", NULL, false, "include what identifies the host; tt branch "
                                          "needs it" },
            { "--no-checkpoints", NULL, false, "leave out the checkpoints; a replay "
                                               "makes its own" },
            { "--scrub", NULL, false, "keep only the shape of the log, for reports; it "
                                      "cannot be replayed" },
            JSON,
        }, tool_pack,
    }, {
        "unpack", { "FILE", "DIR" }, false,
        "Unpacks a packed run into DIR, which must not exist yet.",
        { JSON }, tool_unpack,
    }, {
        "branch", { "RUN" }, true,
        "Continues from a full checkpoint of RUN, with the options of the "
        "recording,\nand records that. Options after -- are added to them.",
        {
            { "--at", "ID|@NAME", false, "the full checkpoint to start from (required)",
              true },
            { "--to", "DIR", false, "directory of the new run; default: a new one" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--without", "OPTION", true, "leave out a recorded option and its value, "
                                           "wherever it occurs" },
            { "--frames", "DIR", false, "directory of the frame stores (default: where those "
                                        "of RUN are)" },
            { "--print", NULL, false, "print the command, but do not run it" },
        }, tool_branch,
    }, {
        "term", { "[RUN]" }, true,
        "Runs a VM on this terminal, recorded, with keys that undo and redo what was "
        "typed:\nCtrl-a u, Ctrl-a r. From a full checkpoint of RUN, or a new one with "
        "QEMU's options\nafter --.",
        {
            { "--at", "ID|@NAME", false, "with RUN: the full checkpoint to start from" },
            { "--to", "DIR", false, "directory of the new run; default: a new one" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--without", "OPTION", true, "with RUN: leave out a recorded option and its "
                                           "value, wherever it occurs" },
            { "--print", NULL, false, "print the command, but do not run it" },
        }, tool_term,
    }, {
        "trace", { "RUN", "FILE" }, false,
        "Replays a run or a part of it in QEMU, and writes the control flow to "
        "FILE:\neach taken branch, interrupt and exception.",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
        }, tool_trace,
    }, {
        "branches", { "FILE" }, false,
        "Lists the entries of a branch trace: where execution continued, one per line.",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "--limit", "N", false, "at most N" },
            { "--symbols", "FILE", false, "names for addresses: a vmlinux, or the output "
                                          "of nm or /proc/kallsyms" },
        }, tool_branches,
    }, {
        "compare-traces", { "A", "B" }, false,
        "Shows the first difference between two branch traces of one run, in the "
        "part\nthat both cover: of two replays, or of the recording and a replay.",
        {
            { "--symbols", "FILE", false, "names for addresses: a vmlinux, or the output "
                                          "of nm or /proc/kallsyms" },
            JSON,
        }, tool_compare_traces,
    }, {
        "syscalls", { "RUN" }, false,
        "Shows the system calls of the guest's programs (64-bit Linux), with their "
        "positions.\nQEMU replays the run for it.",
        {
            { "--process", "NAME", false, "only of the program that began with this path "
              "or file name; NAME#2: of the second one" },
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "--limit", "N", false, "at most N" },
            { "-j", "N", false, "number of QEMU processes at a time (default: 1)" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            JSON,
        }, tool_syscalls,
    }, {
        "compare", { "RUN-A", "RUN-B" }, false,
        "Shows where a program of RUN-A and one of RUN-B first do something else, such as "
        "its\nold and its new version, by their system calls: which, with what, and with "
        "what\nresult. Pointers and ids of processes do not count. With --by, by the values "
        "of an\nexpression, or by the branches in its own code. QEMU replays both runs.",
        {
            { "--process", "NAME", false, "the program: the path or file name that it "
              "began with; NAME#2: the second one (required)", true },
            { "--with", "NAME", false, "the program in RUN-B, if its name differs" },
            { "--by", "'EXPR at POINT'|branches", false, "compare the values of EXPR, each "
              "time that the program reaches POINT, as tt find understands both; or the "
              "branches that it took" },
            { "--with-by", "'EXPR at POINT'", false, "the same for RUN-B, if it differs" },
            { "--symbols", "FILE", false, "the file of the program, for --by" },
            { "--with-symbols", "FILE", false, "the same for RUN-B, if it differs" },
            { "--all", NULL, false, "all differences, as diff shows them" },
            { "-j", "N", false, "number of QEMU processes at a time (default: 1)" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            JSON,
        }, tool_compare,
    }, {
        "disk", { "list|info|commit|export|serve|diff", "FILE|RUN", "[OUT|A]", "[B]" },
        false,
        "Works on a disk with versions (an image of the format tt) or a disk of a run: "
        "list\nshows the versions, info the properties of the disk; commit writes what a "
        "guest\nwrote into the image below; export writes a version to the file OUT; "
        "serve offers\none over NBD, read-only; diff shows the blocks and files in which "
        "A and B differ.\nFor a FILE, A, B and V are numbers or names of versions. For a "
        "RUN, A, B and PLACE\nare positions, ids of full checkpoints, or @NAMEs of these "
        "or of marks; they mean\nthe version of the nearest full checkpoint at or before "
        "that. 'now' is the disk as\nit is now.",
        {
            { "--disk", "NAME", false, "which of a run's disks, if it has several" },
            { "--version", "V", false, "export, serve: the version; default: now" },
            { "--at", "PLACE", false, "export, serve: the version at a place in the "
                                      "run" },
            { "--format", "FORMAT", false, "export: raw or qcow2; default: by the ending "
                                           "of OUT" },
            { "--force", NULL, false, "export: overwrite OUT if it exists; commit: also "
                                       "where an image has changed, or the run needs it" },
            { "--socket", "PATH", false, "serve: on a new Unix socket" },
            { "--port", "N", false, "serve: on this port of 127.0.0.1; 0: any free "
                                    "port" },
            { "--seconds", "N", false, "serve: end after N seconds" },
            { "--keep", NULL, false, "serve: go on when the last client has left" },
            { "--blocks", NULL, false, "diff: only the blocks" },
            { "--files", NULL, false, "diff: only the files" },
            JSON,
        }, tool_disk,
    },
    {
        "mcp", { "RUN" }, false,
        "Answers questions about RUN for a program that speaks MCP (an agent, an editor), on\n"
        "standard input and output: go to a position, find, origin, registers, memory,\n"
        "backtrace, console, screenshot, events. QEMU replays the run for it. Nothing is\n"
        "changed, neither the run nor anything else.",
        {
            { "--symbols", "FILE", false, "names: a vmlinux, or the output of nm or "
                                          "/proc/kallsyms; backtraces need an ELF file" },
            { "--offset", "N", false, "add N to the addresses in FILE: the program was "
                                      "loaded higher" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--gdb", "PATH", false, "for backtraces (default: gdb)" },
        }, tool_mcp,
    }, {
        "page", { "RUN" }, false,
        "Makes one file for a browser, without a server: time, events, I/O, "
        "checkpoints,\nmarks, branches and the console over positions. A click shows how "
        "to go there.",
        {
            { "-o", "FILE", false, "the file to write (required); -: standard output", true },
            { "--force", NULL, false, "overwrite FILE if it exists" },
            { "--screenshots", "N", false, "with N pictures of the guest's screen, 100 at "
              "most: at marks, at full checkpoints, and evenly in between (default: 0); QEMU "
              "replays the run for it" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
        }, tool_page,
    }, {
        "group",
        { "info|check|checkpoint|checkpoints|incidents|cut|order|compare|live", "DIR|FILE",
          "[PLACE|SECOND]", "[PLACE]" }, true,
        "Works on the runs of VMs that talked to each other (-netdev tt): those in "
        "the\ndirectory DIR, or those listed in FILE. info shows them; check tells "
        "whether they\nfit together; checkpoints lists those of the whole group, "
        "incidents what went wrong\nin a member and where all of them stood then; cut "
        "gives, for a PLACE in\none run, the latest positions of the others that are "
        "consistent with it; order tells\nwhich of two places came first. checkpoint makes "
        "one of the whole group; it takes a\nmember's QMP socket in place of DIR. A PLACE is "
        "MEMBER:POSITION, where POSITION may also\nbe start, end or @MARK. live lets the "
        "whole group go on from one of its checkpoints,\neach member as a branch; options "
        "after -- are for each of them, with its name in\nplace of {member}. compare tells "
        "how what the members of a SECOND group sent differs\nfrom what they had sent: of "
        "those that went on, or of a recording of its own.",
        {
            { "--at-most", "PLACE", true, "cut: the latest cut that is not after this "
                                          "place, nor after PLACE" },
            { "--at", "@group-N", false, "live: the checkpoint; default: the last one" },
            { "--to", "DIR", false, "live: directory of the new runs (required)" },
            { "--hub", "OPTIONS", false, "live: start a hub, too, with these options of "
                                         "tt hub, such as '--loss 1', or ''" },
            { "--qemu", "PATH", false, "live: default: qemu-system-x86_64 next to this "
                                       "program" },
            { "--without", "OPTION", true, "live: leave out a recorded option" },
            { "--print", NULL, false, "live: print the commands, but do not run them" },
            { "--exact", "MEMBER", false, "live: this one does what it did, and only the "
                                          "others go on" },
            { "--frames", "DIR", false, "live: frame stores (default: new ones in the "
                                        "directory of the new runs)" },
            JSON,
        }, tool_group,
    }, {
        "hub", { NULL }, false,
        "Joins the VMs of a group (-netdev tt,connect=...) as a switch does. Frames can "
        "be\ndelayed and lost at random: with the same seed, the same frames meet the "
        "same fate.",
        {
            { "--group", "NAME", false, "name of the group (required)", true },
            { "--listen", "ADDRESS", true, "listen on a Unix socket (a path) or "
                                           "HOST:PORT (required)", true },
            { "--key-file", "FILE", false, "key of the group; needed when members are on "
                                           "other hosts" },
            { "--delay", "MS", false, "delay each frame by MS" },
            { "--jitter", "MS", false, "and by up to MS more, at random: frames can "
                                       "overtake each other" },
            { "--loss", "PERCENT", false, "lose PERCENT of the frames" },
            { "--rate", "MBIT", false, "limit the output of each port (0: no limit)" },
            { "--queue", "MS", false, "with --rate: lose frames that would wait longer "
                                      "(default: 100)" },
            { "--seed", "N", false, "seed of the random choices (default: 1)" },
            { "--log", "FILE", false, "write the fate of each frame, one JSON object per "
                                      "line" },
            { "--members", "N", false, "let at most N members in (default: any number)" },
            { "--once", NULL, false, "end when the last member has left" },
            { "--seconds", "N", false, "end after N seconds (0: never)" },
        }, tool_hub,
    }, {
        "watch", { "QMP-SOCKET" }, false,
        "Asks a service of the guest again and again whether it answers. When it does no "
        "more,\nthe VM at QMP-SOCKET gets a mark, incident-N, and a flight recorder saves "
        "its\nwindow; so do all VMs of its group, at positions that are consistent.",
        {
            { "--tcp", "HOST:PORT", false, "the service accepts connections" },
            { "--agent", "SOCKET", false, "the guest agent behind this socket answers" },
            { "--script", "COMMAND", false, "this command of the shell ends with "
                                            "status 0" },
            { "--every", "SECONDS", false, "how often (default: 5)" },
            { "--patience", "SECONDS", false, "how long one answer may take (default: 5)" },
            { "--fails", "N", false, "how often it must fail in a row (default: 3)" },
            { "--once", NULL, false, "end after the first incident" },
        }, tool_watch,
    },
    { NULL },
};

int main(int argc, char **argv)
{
    bool is_over;
    ToolArgs a;
    int result;

    /* A reader that has seen enough (head, less) ends us quietly. */
    signal(SIGPIPE, SIG_DFL);
    /* Beyond a limit on files writing fails, and what was begun is removed. */
    signal(SIGXFSZ, SIG_IGN);
    result = tool_args_parse(&a, argv[0], argv + 1, &is_over);
    if (!is_over) {
        result = a.command->run(&a);
        if (result == TOOL_PROBLEM && tool_has(&a, "--json")) {
            tool_json_error();
        }
    }
    tool_args_cleanup(&a);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return tool_complain("cannot write the output: %s",
                             g_strerror(errno));
    }
    return result;
}
