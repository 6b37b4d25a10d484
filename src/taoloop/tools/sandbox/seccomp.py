"""The filter of system calls that a sandbox runs under: a small classic BPF program, made here.

Namespaces hide what a program must not touch; this takes away calls that have let programs out of namespaces before,
and those that would go round the limits. Everything else is allowed: it is the second wall, not the first.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator
from typing import Literal, NamedTuple

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}  # linux/audit.h

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000  # linux/seccomp.h
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data; little endian: the low half is first
_X32 = 0x40000000  # the second set of numbers that x86_64 has

_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CREATING = 0x400040  # O_CREAT, O_TMPFILE
_SET_ID = 0o6000  # a set-user-ID file in the workspace would carry the operator's rights, outside too
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # typing into a terminal
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK; AF_VSOCK would pass by the network namespace
_UNIX = 1


class _Test(NamedTuple):
    """What an argument must be for a rule to hold."""

    argument: int
    kind: Literal["any_bit", "equal", "not_in"]
    values: tuple[int, ...]


class _Rule(NamedTuple):
    """A call that fails with `error` where all tests hold: its numbers on x86_64 (None: none) and elsewhere."""

    x86_64: int | None
    generic: int | None
    error: int = errno.EPERM
    tests: tuple[_Test, ...] = ()


def _bits(argument: int, mask: int) -> _Test:
    return _Test(argument, "any_bit", (mask,))


_RULES: dict[str, _Rule] = {
    # Other processes, and the kernel itself.
    "ptrace": _Rule(101, 117),
    "process_vm_readv": _Rule(310, 270),
    "process_vm_writev": _Rule(311, 271),
    "kcmp": _Rule(312, 272),
    "pidfd_getfd": _Rule(438, 438),
    "bpf": _Rule(321, 280),
    "perf_event_open": _Rule(298, 241),
    "userfaultfd": _Rule(323, 282),
    "io_uring_setup": _Rule(425, 425),
    "io_uring_enter": _Rule(426, 426),
    "io_uring_register": _Rule(427, 427),
    "keyctl": _Rule(250, 219),
    "add_key": _Rule(248, 217),
    "request_key": _Rule(249, 218),
    "syslog": _Rule(103, 116),
    "acct": _Rule(163, 89),
    "quotactl": _Rule(179, 60),
    "reboot": _Rule(169, 142),
    "swapon": _Rule(167, 224),
    "swapoff": _Rule(168, 225),
    "kexec_load": _Rule(246, 104),
    "kexec_file_load": _Rule(320, 294),
    "init_module": _Rule(175, 105),
    "finit_module": _Rule(313, 273),
    "delete_module": _Rule(176, 106),
    # Mounts, handles that know no path, and further namespaces.
    "mount": _Rule(165, 40),
    "umount2": _Rule(166, 39),
    "pivot_root": _Rule(155, 41),
    "chroot": _Rule(161, 51),
    "open_tree": _Rule(428, 428),
    "move_mount": _Rule(429, 429),
    "fsopen": _Rule(430, 430),
    "fsconfig": _Rule(431, 431),
    "fsmount": _Rule(432, 432),
    "fspick": _Rule(433, 433),
    "mount_setattr": _Rule(442, 442),
    "name_to_handle_at": _Rule(303, 264),
    "open_by_handle_at": _Rule(304, 265),
    "setns": _Rule(308, 268),
    "unshare": _Rule(272, 97),
    "clone": _Rule(56, 220, tests=(_bits(0, _NAMESPACES),)),
    "clone3": _Rule(435, 435, errno.ENOSYS),  # its flags lie in memory, where no filter looks; libraries fall back
    # Memory that belongs to no process, so that nobody could count it.
    "memfd_create": _Rule(319, 279, errno.ENOSYS),
    "memfd_secret": _Rule(447, 447, errno.ENOSYS),
    "shmget": _Rule(29, 194, errno.ENOSYS),
    "mq_open": _Rule(240, 180, errno.ENOSYS),
    # Files with the set-user-ID bit.
    "chmod": _Rule(90, None, tests=(_bits(1, _SET_ID),)),
    "fchmod": _Rule(91, 52, tests=(_bits(1, _SET_ID),)),
    "fchmodat": _Rule(268, 53, tests=(_bits(2, _SET_ID),)),
    "fchmodat2": _Rule(452, 452, tests=(_bits(2, _SET_ID),)),
    "creat": _Rule(85, None, tests=(_bits(1, _SET_ID),)),
    "open": _Rule(2, None, tests=(_bits(1, _CREATING), _bits(2, _SET_ID))),
    "openat": _Rule(257, 56, tests=(_bits(2, _CREATING), _bits(3, _SET_ID))),
    "openat2": _Rule(437, 437, errno.ENOSYS),  # its mode lies in memory
    "mknod": _Rule(133, None, tests=(_bits(1, _SET_ID),)),
    "mknodat": _Rule(259, 33, tests=(_bits(2, _SET_ID),)),
    # Terminals, and sockets that no namespace holds.
    "ioctl TIOCSTI": _Rule(16, 29, tests=(_Test(1, "equal", (_TIOCSTI,)),)),
    "ioctl TIOCLINUX": _Rule(16, 29, tests=(_Test(1, "equal", (_TIOCLINUX,)),)),
    "socket": _Rule(41, 198, errno.EAFNOSUPPORT, (_Test(0, "not_in", _FAMILIES),)),
}

_NETWORK_RULE = _Rule(41, 198, errno.EAFNOSUPPORT, (_Test(0, "equal", (_UNIX,)),))
"""With the machine's own network come its abstract sockets (of the desktop, of container engines)."""


def seccomp_filter(*, network: bool, machine: str | None = None) -> bytes | None:
    """The program for this machine (or the one named), as the kernel takes it; None where no numbers are known.

    `network`: the sandbox shares the machine's network, so sockets of the family UNIX are taken away.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES or struct.calcsize("P") != 8:
        return None
    x86 = machine == "x86_64"
    program = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_IF_EQUAL, _ARCHITECTURES[machine], yes=1),
        _step(_RETURN, _KILL),  # another architecture's calls, with numbers of their own
        _step(_LOAD, _NUMBER),
    ]
    if x86:
        program += [_step(_IF_AT_LEAST, _X32, no=1), _step(_RETURN, _KILL)]
    for rule in (*_RULES.values(), *((_NETWORK_RULE,) if network else ())):
        number = rule.x86_64 if x86 else rule.generic
        if number is not None:
            program += _block(number, rule)
    program.append(_step(_RETURN, _ALLOW))
    return b"".join(program)


def _block(number: int, rule: _Rule) -> list[bytes]:
    """The steps of one rule; whoever it does not concern leaves it with the number loaded as before."""
    refused = [_step(_RETURN, _ERRNO | rule.error)]
    if not rule.tests:
        return [_step(_IF_EQUAL, number, no=1), *refused]
    inner = refused
    for test in reversed(rule.tests):
        inner = [*_tested(test, len(inner)), *inner]
    return [_step(_IF_EQUAL, number, no=len(inner) + 1), *inner, _step(_LOAD, _NUMBER)]


def _tested(test: _Test, offset: int) -> Iterator[bytes]:
    """The steps of one test: continue if it holds, else skip the `offset` steps that follow."""
    yield _step(_LOAD, _ARGUMENTS + 8 * test.argument)
    for remaining, value in zip(reversed(range(len(test.values))), test.values, strict=True):
        if test.kind == "not_in":
            yield _step(_IF_EQUAL, value, yes=remaining + offset)
        else:
            yield _step(_IF_EQUAL if test.kind == "equal" else _IF_ANY_BIT, value, no=offset)


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are how many of the next ones a jump leaves out."""
    return struct.pack("=HBBI", code, yes, no, value)
