/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `tt` tool: looks into a run without a virtual machine, packs it, and has
 * QEMU verify it. This file is the table of its commands.
 */
#include "tt-tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define JSON { "--json", NULL, false, "for programs: JSON" }

const ToolCommand tool_commands[] = {
    {
        "info", { "RUN" }, false,
        "What was recorded, and where the run stands among its branches.",
        { JSON }, tool_info,
    }, {
        "log", { "RUN" }, false,
        "The events of a run, one per line.",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "--kind", "KIND", true, "of this kind: a name as printed, or a "
              "number" },
            { "--limit", "N", false, "no more than N" },
            { "--json", NULL, false, "for programs: one JSON object per line" },
            { "--data", NULL, false, "with --json: also the data, in hex" },
            { "--device", "ID", false, "what driver and device ID said to each "
              "other" },
            { "--registers", "FILE", false, "names of its registers" },
            { "--timeline", NULL, false, "the same as a plot" },
        }, tool_log,
    }, {
        "stats", { "RUN" }, false,
        "Where the bytes of a log go, by kind of event.",
        { JSON }, tool_stats,
    }, {
        "check", { "RUN" }, false,
        "Reads all of a run and compares its checksums: log, manifest, pages and\n"
        "checkpoints, marks, disks, and what a branch needs of its parents. Executes\n"
        "nothing; use tt verify to see whether it replays exactly.",
        { JSON }, tool_check,
    }, {
        "verify", { "RUN" }, false,
        "Re-executes a run in QEMU, the intervals between its checkpoints each on\n"
        "its own, and compares what comes of it with what was recorded.",
        {
            { "-j", "N", false, "number of QEMU processes at a time (default 1)" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--symbols", "FILE", false, "names for addresses: a vmlinux, "
              "or what nm or /proc/kallsyms print" },
            { "--once", NULL, false, "do not replay the first wrong interval a "
              "second time" },
            { "--quiet", NULL, false, "say only what is wrong" },
            JSON,
        }, tool_verify,
    }, {
        "find", { "RUN", "CONDITION" }, false,
        "The positions at which CONDITION becomes true: a C expression of registers ($rip),\n"
        "memory (*(u32 *)0x1000) and names (*(u64 *)&jiffies). EXPRESSION at ADDRESS is\n"
        "looked at where ADDRESS is executed. QEMU replays the run for it.",
        {
            { "--first", NULL, false, "only the first position" },
            { "--last", NULL, false, "only the last one" },
            { "--all", NULL, false, "all (default)" },
            { "--changes", NULL, false, "where its value changes" },
            { "--monotone", NULL, false, "once true, it stays true: bisect, which is "
              "fast" },
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position" },
            { "-j", "N", false, "number of QEMU processes at a time (default 1)" },
            { "--limit", "N", false, "no more than N (default 10000)" },
            { "--symbols", "FILE", false, "names: a vmlinux, or what nm or /proc/kallsyms "
              "print" },
            { "--offset", "N", false, "the program was loaded so much higher than FILE "
              "says" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--quiet", NULL, false, "no progress, nothing if nothing was found" },
            JSON,
        }, tool_find,
    }, {
        "run-plugin", { "RUN", "PLUGIN[,NAME=VALUE...]" }, false,
        "Replays a part of a run with a plugin of QEMU's TCG, which sees that part and no\n"
        "more, and shows what it says. PLUGIN is a file, or count (instructions),\n"
        "functions (instructions by function, as folded stacks) or coverage.",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "-j", "N", false, "number of QEMU processes at a time (default 1); each has "
              "a plugin of its own" },
            { "--out", "FILE", false, "what the plugin says goes there; must not exist" },
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
        "Packs a run into one file, with all that a replay needs. What concerns\n"
        "the host (its name, directories, the command line) is left out unless you\n"
        "ask for it.",
        {
            { "--with-host", NULL, false, "also what concerns the host; tt "
              "branch needs it" },
            { "--no-checkpoints", NULL, false, "smaller; a replay makes its "
              "own" },
            { "--scrub", NULL, false, "for reports: only the shape of the log. It "
              "cannot be replayed" },
            JSON,
        }, tool_pack,
    }, {
        "unpack", { "FILE", "DIR" }, false,
        "Unpacks a packed run into DIR, which must not exist yet.",
        { JSON }, tool_unpack,
    }, {
        "branch", { "RUN" }, true,
        "Goes on from a full checkpoint of RUN, with the options of the recording,\n"
        "and records that. Options after -- are added to them.",
        {
            { "--at", "ID|@NAME", false, "the full checkpoint (required)",
              true },
            { "--to", "DIR", false, "directory of the new run; default: a "
              "fresh one" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
            { "--without", "OPTION", true, "leaves a recorded option out, with its "
              "value, each time it is there" },
            { "--print", NULL, false, "shows the command and does not run it" },
        }, tool_branch,
    }, {
        "trace", { "RUN", "FILE" }, false,
        "Replays a part of a run in QEMU and records the control flow: each\n"
        "taken branch, interrupt and exception.",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "--qemu", "PATH", false, "default: qemu-system-x86_64 next to this "
              "program" },
        }, tool_trace,
    }, {
        "branches", { "FILE" }, false,
        "Shows a branch trace: where execution went on, one per line.",
        {
            { "--from", "POS", false, "from this position on" },
            { "--to", "POS", false, "up to this position, not included" },
            { "--limit", "N", false, "no more than N" },
            { "--symbols", "FILE", false, "names for addresses: a vmlinux, "
              "or what nm or /proc/kallsyms print" },
        }, tool_branches,
    }, {
        "compare-traces", { "A", "B" }, false,
        "The first difference between two branch traces of one run, in the part that\n"
        "both have: of two replays, or of the recording and a replay.",
        {
            { "--symbols", "FILE", false, "names for addresses: a vmlinux, "
              "or what nm or /proc/kallsyms print" },
            JSON,
        }, tool_compare_traces,
    }, {
        "disk", { "list|info|commit|export|serve|diff", "FILE|RUN", "[OUT|A]", "[B]" },
        false,
        "A disk with versions (an image of the format tt), or a disk of a run: list shows\n"
        "them, info says what the disk is, commit writes what a guest wrote into the image\n"
        "below, export writes one to the file OUT, serve offers one over NBD, read-only,\n"
        "and diff says in which blocks and files A and B differ. Of a FILE, A, B and V are\n"
        "numbers or names; of a RUN, A, B and PLACE are positions, ids of full\n"
        "checkpoints, or @NAMEs of these or of marks: the version that the nearest full\n"
        "checkpoint at or before it has. 'now' is the disk as it is now.",
        {
            { "--disk", "NAME", false, "which of a run's disks, if it has several" },
            { "--version", "V", false, "export, serve: which; default: now" },
            { "--at", "PLACE", false, "export, serve: the same, by a place in the run" },
            { "--format", "FORMAT", false, "export: raw or qcow2; default: as OUT's name "
              "ends" },
            { "--force", NULL, false, "export: write over OUT if it exists" },
            { "--socket", "PATH", false, "serve: on a Unix socket that it makes" },
            { "--port", "N", false, "serve: on this port of 127.0.0.1; 0: a free one" },
            { "--seconds", "N", false, "serve: no longer than that" },
            { "--keep", NULL, false, "serve: also when the last client has left" },
            { "--blocks", NULL, false, "diff: the blocks only" },
            { "--files", NULL, false, "diff: the files only" },
            JSON,
        }, tool_disk,
    },
    {
        "page", { "RUN" }, false,
        "One file for a browser, without a server: time, events, I/O, checkpoints, marks,\n"
        "branches and the console over positions. A click says how to go there.",
        {
            { "-o", "FILE", false, "the file to make (required)", true },
            { "--force", NULL, false, "write over FILE if it exists" },
        }, tool_page,
    }, {
        "group", { "info|check|checkpoints|cut|order", "DIR|FILE", "[PLACE]", "[PLACE]" }, false,
        "The runs of VMs that talked to each other (-netdev tt): those in the directory\n"
        "DIR, or those that FILE lists. info shows them, check says whether they fit\n"
        "together, checkpoints lists those of the whole group, cut gives for a PLACE in one\n"
        "the latest positions of the others that are consistent with it, and order says\n"
        "which of two places came before the other. A PLACE is MEMBER:POSITION, also MEMBER:start, :end or :@MARK.",
        {
            { "--at-most", "PLACE", true, "cut: the greatest that is behind none of "
              "these, nor behind the first" },
            JSON,
        }, tool_group,
    }, {
        "hub", { NULL }, false,
        "Joins the VMs of a group (-netdev tt,connect=...) as a switch does. Frames can be\n"
        "delayed and lost, by a seed: the same frames have the same fate again.",
        {
            { "--group", "NAME", false, "of the group (required)", true },
            { "--listen", "ADDRESS", true, "where: the path of a Unix socket, or "
              "HOST:PORT (required)", true },
            { "--key-file", "FILE", false, "key of the group; needed beyond this host" },
            { "--delay", "MS", false, "each frame waits so long" },
            { "--jitter", "MS", false, "and up to so much longer: frames overtake each "
              "other" },
            { "--loss", "PERCENT", false, "so many are lost" },
            { "--rate", "MBIT", false, "so much leaves each port a second" },
            { "--queue", "MS", false, "with --rate: what would wait longer for its port "
              "is lost (default 100)" },
            { "--seed", "N", false, "of what looks like chance (default 1)" },
            { "--log", "FILE", false, "the fate of each frame, one JSON object per line" },
            { "--once", NULL, false, "it ends when the last member has left" },
            { "--seconds", "N", false, "no longer than that" },
        }, tool_hub,
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
