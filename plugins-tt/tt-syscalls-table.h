/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the arguments of Linux's system calls (x86-64) are to be read. An argument is
 *
 *   v  a value
 *   p  a pointer, or a number that differs each time, as the id of a process
 *   s  a pointer to a string that ends with 0
 *   b  a pointer to bytes; the next argument says how many
 *   g  not known: a pointer, if it is large
 *
 * and the result v or p. Included once, by the plugin.
 */
#ifndef TT_SYSCALLS_TABLE_H
#define TT_SYSCALLS_TABLE_H

#include <stdint.h>

typedef struct TtSyscall {
    const char *args;
    char result;
} TtSyscall;

static const TtSyscall tt_syscalls[] = {
    [0] = { "vpv", 'v' },       /* read */
    [1] = { "vbv", 'v' },       /* write */
    [2] = { "svv", 'v' },       /* open */
    [3] = { "v", 'v' },         /* close */
    [4] = { "sp", 'v' },        /* stat */
    [5] = { "vp", 'v' },        /* fstat */
    [6] = { "sp", 'v' },        /* lstat */
    [7] = { "pvv", 'v' },       /* poll */
    [8] = { "vvv", 'v' },       /* lseek */
    [9] = { "pvvvvv", 'p' },    /* mmap */
    [10] = { "pvv", 'v' },      /* mprotect */
    [11] = { "pv", 'v' },       /* munmap */
    [12] = { "p", 'p' },        /* brk */
    [13] = { "vppv", 'v' },     /* rt_sigaction */
    [14] = { "vppv", 'v' },     /* rt_sigprocmask */
    [15] = { "", 'p' },         /* rt_sigreturn */
    [16] = { "vvp", 'v' },      /* ioctl */
    [17] = { "vpvv", 'v' },     /* pread64 */
    [18] = { "vbvv", 'v' },     /* pwrite64 */
    [19] = { "vpv", 'v' },      /* readv */
    [20] = { "vpv", 'v' },      /* writev */
    [21] = { "sv", 'v' },       /* access */
    [22] = { "p", 'v' },        /* pipe */
    [23] = { "vpppp", 'v' },    /* select */
    [24] = { "", 'v' },         /* sched_yield */
    [25] = { "pvvvp", 'p' },    /* mremap */
    [28] = { "pvv", 'v' },      /* madvise */
    [32] = { "v", 'v' },        /* dup */
    [33] = { "vv", 'v' },       /* dup2 */
    [34] = { "", 'v' },         /* pause */
    [35] = { "pp", 'v' },       /* nanosleep */
    [36] = { "vp", 'v' },       /* getitimer */
    [37] = { "v", 'v' },        /* alarm */
    [38] = { "vpp", 'v' },      /* setitimer */
    [39] = { "", 'p' },         /* getpid */
    [40] = { "vvpv", 'v' },     /* sendfile */
    [41] = { "vvv", 'v' },      /* socket */
    [42] = { "vbv", 'v' },      /* connect */
    [43] = { "vpp", 'v' },      /* accept */
    [44] = { "vbvvpv", 'v' },   /* sendto */
    [45] = { "vpvvpp", 'v' },   /* recvfrom */
    [46] = { "vpv", 'v' },      /* sendmsg */
    [47] = { "vpv", 'v' },      /* recvmsg */
    [48] = { "vv", 'v' },       /* shutdown */
    [49] = { "vbv", 'v' },      /* bind */
    [50] = { "vv", 'v' },       /* listen */
    [51] = { "vpp", 'v' },      /* getsockname */
    [52] = { "vpp", 'v' },      /* getpeername */
    [53] = { "vvvp", 'v' },     /* socketpair */
    [54] = { "vvvbv", 'v' },    /* setsockopt */
    [55] = { "vvvpp", 'v' },    /* getsockopt */
    [56] = { "vpppp", 'p' },    /* clone */
    [57] = { "", 'p' },         /* fork */
    [58] = { "", 'p' },         /* vfork */
    [59] = { "spp", 'v' },      /* execve */
    [60] = { "v", 'v' },        /* exit */
    [61] = { "ppvp", 'p' },     /* wait4 */
    [62] = { "pv", 'v' },       /* kill */
    [63] = { "p", 'v' },        /* uname */
    [72] = { "vvg", 'v' },      /* fcntl */
    [73] = { "vv", 'v' },       /* flock */
    [74] = { "v", 'v' },        /* fsync */
    [75] = { "v", 'v' },        /* fdatasync */
    [76] = { "sv", 'v' },       /* truncate */
    [77] = { "vv", 'v' },       /* ftruncate */
    [78] = { "vpv", 'v' },      /* getdents */
    [79] = { "pv", 'v' },       /* getcwd */
    [80] = { "s", 'v' },        /* chdir */
    [81] = { "v", 'v' },        /* fchdir */
    [82] = { "ss", 'v' },       /* rename */
    [83] = { "sv", 'v' },       /* mkdir */
    [84] = { "s", 'v' },        /* rmdir */
    [85] = { "sv", 'v' },       /* creat */
    [86] = { "ss", 'v' },       /* link */
    [87] = { "s", 'v' },        /* unlink */
    [88] = { "ss", 'v' },       /* symlink */
    [89] = { "spv", 'v' },      /* readlink */
    [90] = { "sv", 'v' },       /* chmod */
    [91] = { "vv", 'v' },       /* fchmod */
    [92] = { "svv", 'v' },      /* chown */
    [93] = { "vvv", 'v' },      /* fchown */
    [94] = { "svv", 'v' },      /* lchown */
    [95] = { "v", 'v' },        /* umask */
    [96] = { "pp", 'v' },       /* gettimeofday */
    [97] = { "vp", 'v' },       /* getrlimit */
    [98] = { "vp", 'v' },       /* getrusage */
    [99] = { "p", 'v' },        /* sysinfo */
    [100] = { "p", 'p' },       /* times */
    [102] = { "", 'v' },        /* getuid */
    [104] = { "", 'v' },        /* getgid */
    [105] = { "v", 'v' },       /* setuid */
    [106] = { "v", 'v' },       /* setgid */
    [107] = { "", 'v' },        /* geteuid */
    [108] = { "", 'v' },        /* getegid */
    [109] = { "pp", 'v' },      /* setpgid */
    [110] = { "", 'p' },        /* getppid */
    [111] = { "", 'p' },        /* getpgrp */
    [112] = { "", 'p' },        /* setsid */
    [113] = { "vv", 'v' },      /* setreuid */
    [114] = { "vv", 'v' },      /* setregid */
    [115] = { "vp", 'v' },      /* getgroups */
    [116] = { "vp", 'v' },      /* setgroups */
    [117] = { "vvv", 'v' },     /* setresuid */
    [118] = { "ppp", 'v' },     /* getresuid */
    [119] = { "vvv", 'v' },     /* setresgid */
    [120] = { "ppp", 'v' },     /* getresgid */
    [121] = { "p", 'p' },       /* getpgid */
    [124] = { "p", 'p' },       /* getsid */
    [131] = { "pp", 'v' },      /* sigaltstack */
    [133] = { "svv", 'v' },     /* mknod */
    [137] = { "sp", 'v' },      /* statfs */
    [149] = { "pv", 'v' },      /* mlock */
    [150] = { "pv", 'v' },      /* munlock */
    [157] = { "vgggg", 'v' },   /* prctl */
    [158] = { "vp", 'v' },      /* arch_prctl */
    [160] = { "vp", 'v' },      /* setrlimit */
    [161] = { "s", 'v' },       /* chroot */
    [162] = { "", 'v' },        /* sync */
    [165] = { "ssspp", 'v' },   /* mount */
    [166] = { "sv", 'v' },      /* umount2 */
    [169] = { "vvvp", 'v' },    /* reboot */
    [170] = { "bv", 'v' },      /* sethostname */
    [186] = { "", 'p' },        /* gettid */
    [201] = { "p", 'p' },       /* time */
    [202] = { "pvvgpv", 'v' },  /* futex */
    [217] = { "vpv", 'v' },     /* getdents64 */
    [218] = { "p", 'p' },       /* set_tid_address */
    [219] = { "", 'v' },        /* restart_syscall */
    [221] = { "vvvv", 'v' },    /* fadvise64 */
    [228] = { "vp", 'v' },      /* clock_gettime */
    [229] = { "vp", 'v' },      /* clock_getres */
    [230] = { "vvpp", 'v' },    /* clock_nanosleep */
    [231] = { "v", 'v' },       /* exit_group */
    [232] = { "vpvv", 'v' },    /* epoll_wait */
    [233] = { "vvvp", 'v' },    /* epoll_ctl */
    [234] = { "ppv", 'v' },     /* tgkill */
    [235] = { "sp", 'v' },      /* utimes */
    [247] = { "vppvp", 'v' },   /* waitid */
    [254] = { "vsv", 'v' },     /* inotify_add_watch */
    [257] = { "vsvv", 'v' },    /* openat */
    [258] = { "vsv", 'v' },     /* mkdirat */
    [262] = { "vspv", 'v' },    /* newfstatat */
    [263] = { "vsv", 'v' },     /* unlinkat */
    [264] = { "vsvs", 'v' },    /* renameat */
    [265] = { "vsvsv", 'v' },   /* linkat */
    [266] = { "svs", 'v' },     /* symlinkat */
    [267] = { "vspv", 'v' },    /* readlinkat */
    [268] = { "vsv", 'v' },     /* fchmodat */
    [269] = { "vsv", 'v' },     /* faccessat */
    [270] = { "vppppp", 'v' },  /* pselect6 */
    [271] = { "pvppv", 'v' },   /* ppoll */
    [273] = { "pv", 'v' },      /* set_robust_list */
    [280] = { "vspv", 'v' },    /* utimensat */
    [281] = { "vpvvpv", 'v' },  /* epoll_pwait */
    [283] = { "vv", 'v' },      /* timerfd_create */
    [285] = { "vvvv", 'v' },    /* fallocate */
    [286] = { "vvpp", 'v' },    /* timerfd_settime */
    [287] = { "vp", 'v' },      /* timerfd_gettime */
    [288] = { "vppv", 'v' },    /* accept4 */
    [289] = { "vpvv", 'v' },    /* signalfd4 */
    [290] = { "vv", 'v' },      /* eventfd2 */
    [291] = { "v", 'v' },       /* epoll_create1 */
    [292] = { "vvv", 'v' },     /* dup3 */
    [293] = { "pv", 'v' },      /* pipe2 */
    [294] = { "v", 'v' },       /* inotify_init1 */
    [302] = { "pvpp", 'v' },    /* prlimit64 */
    [306] = { "v", 'v' },       /* syncfs */
    [316] = { "vsvsv", 'v' },   /* renameat2 */
    [318] = { "pvv", 'v' },     /* getrandom */
    [319] = { "sv", 'v' },      /* memfd_create */
    [322] = { "vsppv", 'v' },   /* execveat */
    [324] = { "vvv", 'v' },     /* membarrier */
    [326] = { "vpvpvv", 'v' },  /* copy_file_range */
    [332] = { "vsvvp", 'v' },   /* statx */
    [334] = { "pvvv", 'v' },    /* rseq */
    [435] = { "pv", 'p' },      /* clone3 */
    [436] = { "vvv", 'v' },     /* close_range */
    [437] = { "vspv", 'v' },    /* openat2 */
    [439] = { "vsvv", 'v' },    /* faccessat2 */
};

static inline const TtSyscall *tt_syscall(uint64_t number)
{
    static const TtSyscall unknown = { "pppppp", 'v' };

    return number < sizeof(tt_syscalls) / sizeof(tt_syscalls[0]) &&
        tt_syscalls[number].args ? &tt_syscalls[number] : &unknown;
}

#endif
