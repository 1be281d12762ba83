"""What does a simulated loop not do?  Everything that would let the outside in.

A socket, a signal, a child process: each is refused at once, by name, when it is asked for, because a run that waits
for the real world is not a function of its seed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ("NothingOutside",)


def _refuse(operation: str, what: str) -> Callable[..., NoReturn]:
    def refuse(*_arguments: object, **_options: object) -> NoReturn:
        raise NotImplementedError(
            f"{operation}: a simulated loop has no {what}; reach the world through the world's seams instead"
        )

    refuse.__name__ = operation
    return refuse


def _sockets(operation: str) -> Any:
    return _refuse(operation, "sockets")


def _children(operation: str) -> Any:
    return _refuse(operation, "child processes")


def _signals(operation: str) -> Any:
    return _refuse(operation, "signals")


class NothingOutside(asyncio.AbstractEventLoop):
    """An event loop that refuses whatever leads out of the process."""

    add_reader = _sockets("add_reader")
    add_writer = _sockets("add_writer")
    connect_accepted_socket = _sockets("connect_accepted_socket")
    connect_read_pipe = _sockets("connect_read_pipe")
    connect_write_pipe = _sockets("connect_write_pipe")
    create_connection = _sockets("create_connection")
    create_datagram_endpoint = _sockets("create_datagram_endpoint")
    create_server = _sockets("create_server")
    create_unix_connection = _sockets("create_unix_connection")
    create_unix_server = _sockets("create_unix_server")
    getaddrinfo = _sockets("getaddrinfo")
    getnameinfo = _sockets("getnameinfo")
    remove_reader = _sockets("remove_reader")
    remove_writer = _sockets("remove_writer")
    sendfile = _sockets("sendfile")
    sock_accept = _sockets("sock_accept")
    sock_connect = _sockets("sock_connect")
    sock_recv = _sockets("sock_recv")
    sock_recv_into = _sockets("sock_recv_into")
    sock_recvfrom = _sockets("sock_recvfrom")
    sock_recvfrom_into = _sockets("sock_recvfrom_into")
    sock_sendall = _sockets("sock_sendall")
    sock_sendfile = _sockets("sock_sendfile")
    sock_sendto = _sockets("sock_sendto")
    start_tls = _sockets("start_tls")

    subprocess_exec = _children("subprocess_exec")
    subprocess_shell = _children("subprocess_shell")

    add_signal_handler = _signals("add_signal_handler")
    remove_signal_handler = _signals("remove_signal_handler")
