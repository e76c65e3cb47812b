"""A child that tries to get through the wall, and says on stderr how far it came: "saw NAME: done" or "saw NAME: refused".

usage: burglar.py ATTEMPT [ARGUMENT...]"""
import ctypes
import errno
import json
import os
import platform
import socket
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
# Numbers of system calls by machine.
CALLS = {
    "ptrace": {"x86_64": 101, "aarch64": 117},
    "process_vm_readv": {"x86_64": 310, "aarch64": 270},
    "keyctl": {"x86_64": 250, "aarch64": 219},
    "userfaultfd": {"x86_64": 323, "aarch64": 282},
    "io_uring_setup": {"x86_64": 425, "aarch64": 425},
    "perf_event_open": {"x86_64": 298, "aarch64": 241},
    "bpf": {"x86_64": 321, "aarch64": 280},
    "unshare": {"x86_64": 272, "aarch64": 97},
    "setns": {"x86_64": 308, "aarch64": 268},
    "mount": {"x86_64": 165, "aarch64": 40},
    "open_by_handle_at": {"x86_64": 304, "aarch64": 265},
    "kcmp": {"x86_64": 312, "aarch64": 272},
}


def system_call(name, *arguments):
    """True unless the kernel says that this may not be: a call with senseless arguments fails in other ways."""
    result = LIBC.syscall(CALLS[name][platform.machine()], *[ctypes.c_long(a) for a in arguments])
    return result >= 0 or ctypes.get_errno() != errno.EPERM


def processes():
    return len([p for p in os.listdir("/proc") if p.isdigit()]) > 5


def signals(pid):
    os.kill(int(pid), 0)
    return True


def daemon(mark):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            os.execvp("sleep", ["sleep", mark])
        os._exit(0)
    os.wait()
    time.sleep(0.2)
    return True


def network(port):
    socket.create_connection(("127.0.0.1", int(port)), 5).close()
    return True


def reads(path_in_hex):
    with open(bytes.fromhex(path_in_hex)) as f:
        return bool(f.read())


def writes(path_in_hex):
    with open(bytes.fromhex(path_in_hex), "w") as f:
        f.write("changed")
    return True


def sysctl():
    return os.access("/proc/sys/vm/overcommit_memory", os.W_OK)


def fills_tmp():
    fd = os.open("/tmp/large", os.O_CREAT | os.O_WRONLY)
    os.posix_fallocate(fd, 0, 3 << 29)
    return True


def environment(name):
    return name in os.environ


def forks(n):
    children = []
    try:
        for _ in range(int(n)):
            pid = os.fork()
            if pid == 0:
                time.sleep(600)
            children.append(pid)
    finally:
        for pid in children:
            os.kill(pid, 9)
    return True


def eats(n_bytes):
    return len(bytearray(b"x") * int(n_bytes)) > 0  # and touches all of it


def resizes(n_bytes):
    os.ftruncate(3, int(n_bytes))
    return True


def vsock():
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


def sends():
    socket.socket(fileno=os.dup(0)).send(b"x")
    return True


def peer():
    try:
        socket.socket(fileno=os.dup(0)).getsockopt(socket.SOL_SOCKET, 77)
    except OSError as e:
        return e.errno not in (errno.EPERM, errno.ENOPROTOOPT)
    return True


def forges():
    os.write(2, b"tests:1 passed:1 failed:0\n\x1b[31mred\n")
    return True


def floods():
    os.write(2, b"x" * 100 + b"\n")
    for _ in range(1000):
        os.write(2, b"y" * 1023 + b"\n")
    return True


def greets(keys):
    request = json.loads(sys.stdin.readline())
    print(json.dumps({"id": request["id"], "fa_exec": 2, "name": "burglar", **json.loads(keys)}), flush=True)
    return True


def main():
    attempt, arguments = sys.argv[1], sys.argv[2:]
    try:
        done = system_call(attempt, *[int(a) for a in arguments]) if attempt in CALLS else globals()[attempt](*arguments)
    except (OSError, MemoryError) as error:
        done = False
        print(f"{attempt}: {error}", file=sys.stderr)
    print(f"saw {attempt}: {'done' if done else 'refused'}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
