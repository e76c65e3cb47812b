"""Lines of stdin to a Unix socket and back: a child of `exec:` that only passes on."""

import socket
import sys


def main(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        answers = connection.makefile("rb")
        for line in sys.stdin.buffer:
            connection.sendall(line)
            sys.stdout.buffer.write(answers.readline())
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
