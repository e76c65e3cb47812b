#include "gpu/wall/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_PROCESSOR AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_PROCESSOR AUDIT_ARCH_AARCH64
#else
#define THIS_PROCESSOR 0
#endif

/* Calls newer than some C libraries know; their numbers are the same on every processor. */
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#define SO_PEER_PIDFD 77 /* a handle to the process at the other end */

/* Denied with EPERM, not with a signal: libraries ask for some of them (io_uring, perf) and go on without. */
static const int denied[] = {
    /* other processes, whatever the namespaces say */
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_process_madvise,
    SYS_process_mrelease,
    SYS_move_pages,
    SYS_migrate_pages,
    /* namespaces, mounts, roots */
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_open_tree_attr,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_sethostname,
    SYS_setdomainname,
    /* parts of the kernel with a long record of holes, and no use for attention */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_fanotify_init,
    SYS_lookup_dcookie,
    SYS_nfsservctl,
    SYS_vhangup,
    /* the machine */
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_syslog,
    SYS_acct,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
#ifdef __x86_64__
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_create_module,
    SYS_get_kernel_syms,
    SYS_query_module,
    SYS_uselib,
    SYS__sysctl,
    SYS_ustat,
    SYS_sysfs,
#endif
};
enum { N_DENIED = sizeof denied / sizeof *denied };

/* Sockets of these families and no others: AF_VSOCK reaches the machine below this one whatever network there is. */
static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
enum { N_FAMILIES = sizeof families / sizeof *families };

#define NAMESPACES                                                                                           \
  (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* ---- writing the filter ---- */

typedef struct program {
  struct sock_filter step[3 * N_DENIED + 64];
  unsigned short n;
} program;

static void add(program *p, unsigned code, uint32_t k, uint8_t if_true, uint8_t if_false) {
  p->step[p->n++] = (struct sock_filter){(uint16_t)code, if_true, if_false, k};
}

static void load(program *p, size_t offset) {
  add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(program *p, uint32_t action) {
  add(p, BPF_RET | BPF_K, action, 0, 0);
}

#define NUMBER offsetof(struct seccomp_data, nr)
/* The lower half of an argument: both processors are little endian. */
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define DENY(error) (SECCOMP_RET_ERRNO | (error))

/* A program for another processor would have other numbers, so that every row of the table would mean something else. */
static void check_processor(program *p) {
  load(p, offsetof(struct seccomp_data, arch));
  add(p, BPF_JMP | BPF_JEQ | BPF_K, THIS_PROCESSOR, 1, 0);
  answer(p, SECCOMP_RET_KILL_PROCESS);
  load(p, NUMBER);
#ifdef __x86_64__
  add(p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* x32 */
  answer(p, SECCOMP_RET_KILL_PROCESS);
#endif
}

static void deny_calls(program *p) {
  for (int i = 0; i < N_DENIED; ++i) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)denied[i], 0, 1);
    answer(p, DENY(EPERM));
  }
  /* Its flags lie in memory, where no filter sees them. The C library takes clone instead. */
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
  answer(p, DENY(ENOSYS));
}

static void deny_new_namespaces(program *p) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
  load(p, ARGUMENT(0));
  add(p, BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1);
  answer(p, DENY(EPERM));
  load(p, NUMBER);
}

static void deny_other_families(program *p) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, N_FAMILIES + 3);
  load(p, ARGUMENT(0));
  for (int i = 0; i < N_FAMILIES; ++i)
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)families[i], (uint8_t)(N_FAMILIES - i), 0);
  answer(p, DENY(EPERM));
  load(p, NUMBER);
}

/* The other end of its stdin is the judge. */
static void deny_peer(program *p) {
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 4);
  load(p, ARGUMENT(2));
  add(p, BPF_JMP | BPF_JEQ | BPF_K, SO_PEER_PIDFD, 0, 1);
  answer(p, DENY(EPERM));
  load(p, NUMBER);
}

bool fa_wall_seccomp(char *why, size_t size) {
  program p = {.n = 0};
  if (THIS_PROCESSOR == 0) {
    snprintf(why, size, "there is no table of system calls for this processor");
    return false;
  }
  check_processor(&p);
  deny_calls(&p);
  deny_new_namespaces(&p);
  deny_other_families(&p);
  deny_peer(&p);
  answer(&p, SECCOMP_RET_ALLOW);
  const struct sock_fprog filter = {.len = p.n, .filter = p.step};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0)
    return true;
  snprintf(why, size, "the kernel takes no filter: %s", strerror(errno));
  return false;
}

/* ---- is it there? ---- */

static bool refused(long result, int error) {
  return result == -1 && errno == error;
}

bool fa_wall_seccomp_holds(char *why, size_t size) {
  const struct {
    const char *call;
    bool denied;
  } trial[] = {
      {"ptrace", refused(syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0), EPERM)},
      {"process_vm_readv", refused(syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0), EPERM)},
      {"unshare", refused(syscall(SYS_unshare, 0), EPERM)},
      {"io_uring_setup", refused(syscall(SYS_io_uring_setup, 0, NULL), EPERM)},
      {"bpf", refused(syscall(SYS_bpf, -1, NULL, 0), EPERM)},
      {"keyctl", refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0), EPERM)},
      {"clone3", refused(syscall(SYS_clone3, NULL, 0), ENOSYS)},
      {"clone", refused(syscall(SYS_clone, CLONE_NEWUTS, 0, 0, 0, 0), EPERM)},
      {"socket", refused(syscall(SYS_socket, 40 /* AF_VSOCK */, SOCK_STREAM, 0), EPERM)},
  };
  for (size_t i = 0; i < sizeof trial / sizeof *trial; ++i) {
    if (trial[i].denied) continue;
    snprintf(why, size, "the call %s goes through", trial[i].call);
    return false;
  }
  return true;
}
