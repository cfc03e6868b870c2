"""The guard of the user's files, child half: the original is kept before a file is first touched.

Every write that Python can see passes an audit hook; `torch.save`, `torch.jit` and safetensors write from C++ or
Rust and are wrapped. What is kept, and where, is journalled before it happens, so the parent can undo it from the
journal alone, whoever was killed and when. Undoing the records in reverse order gives the state before the launch.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import itertools
import json
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .imports import after_import

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND | os.O_CREAT
_SQLITE_CAP_BYTES = 64 << 20
"""A database is copied when it is opened, read-only or not, so a large one is only named."""
_SPECIAL = ("/dev/", "/proc/", "/sys/")

_guard: _Guard | None = None


class KeepRefused(OSError):
    """A change of an existing file was refused before it happened, because no copy of it could be kept."""


def install(run_directory: str, launch: int, keep_cap_bytes: int) -> None:
    """Guard the user's files for the rest of this process.

    Before an existing file is changed, replaced or removed, its original is kept in `<run>/kept/NNN/`, or beside it
    where that is another filesystem. An in-place change of a file larger than `keep_cap_bytes`, of which a copy
    would be needed, raises `KeepRefused`.
    """
    global _guard  # noqa: PLW0603 - audit hooks cannot be removed, so there is one guard a process
    if _guard is not None:
        return
    _guard = _Guard(run_directory, launch, keep_cap_bytes)
    after_import("torch", _wrap_torch)
    after_import("safetensors", _wrap_safetensors)
    sys.addaudithook(_guard.hook())


def arguments() -> tuple[str, int, int] | None:
    """The arguments of `install` in this process, for those that a spawned worker needs; None: not installed."""
    return None if _guard is None else _guard.arguments


def _wrap_torch(torch: Any) -> None:
    torch.save = torch.serialization.save = _wrapped(torch.save, "torch.save", "f")
    script_module = torch.jit.RecursiveScriptModule
    if hasattr(script_module, "save"):  # not where PYTORCH_JIT=0
        script_module.save = _wrapped(script_module.save, "torch.save", "f")


def _wrap_safetensors(safetensors: Any) -> None:
    safetensors.serialize_file = _wrapped(safetensors.serialize_file, "safetensors", "filename")


def _wrapped(write: Callable[..., Any], writer: str, keyword: str) -> Callable[..., Any]:
    """`write(what, file)`, told to the guard before it runs."""

    @functools.wraps(write)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if _guard is not None:
            _guard.before_native_write(args[1] if len(args) > 1 else kwargs.get(keyword), writer)
        return write(*args, **kwargs)

    return guarded


class _Guard:
    """What is known of the target's files in this launch, and how each is kept."""

    def __init__(self, run_directory: str, launch: int, keep_cap_bytes: int) -> None:
        run = os.path.realpath(run_directory)
        self.arguments = (run, launch, keep_cap_bytes)
        self.cap_bytes = keep_cap_bytes
        self.kept = os.path.join(run, "kept", f"{launch:03d}")
        os.makedirs(self.kept, exist_ok=True)
        self.journal = _Journal(os.path.join(run, "journal"), launch)
        self.never = (*_SPECIAL, run + os.sep)
        self.unguarded = (*self.never, *_cache_folders())
        self.known: set[str] = set()
        self.folders: set[str] = set()
        self.writers: dict[str, str | None] = {}
        self.shared: set[tuple[int, int]] = set()
        self.numbers = itertools.count(1)
        self.local = threading.local()
        self.alive = os.open(os.path.join(self.kept, "alive"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.alive, fcntl.LOCK_SH)

    # ------------------------------------------------------------------------------------------ what is seen

    def hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        """The audit hook: a dictionary look-up for events that do not concern files."""
        handlers: dict[str, Callable[..., None]] = {
            "open": self.on_open,
            "os.chmod": self.on_chmod,
            "os.link": self.on_link,
            "os.mkdir": self.on_mkdir,
            "os.remove": self.on_remove,
            "os.rename": self.on_rename,
            "os.rmdir": self.on_rmdir,
            "os.symlink": self.on_symlink,
            "os.truncate": self.on_truncate,
            "sqlite3.connect": self.on_sqlite,
        }
        find = handlers.get

        def hook(event: str, args: tuple[Any, ...]) -> None:
            handler = find(event)
            if handler is None or (event == "open" and not args[2] & _WRITES):
                return
            with self.own_calls() as first:
                if first:
                    handler(*args)

        return hook

    @contextlib.contextmanager
    def own_calls(self) -> Iterator[bool]:
        """False inside the guard's own file operations."""
        first = not getattr(self.local, "busy", False)
        self.local.busy = True
        try:
            yield first
        finally:
            self.local.busy = not first

    def before_native_write(self, file: Any, writer: str) -> None:
        with self.own_calls() as first:
            if first:
                self.on_native_write(file, writer)

    def on_open(self, path: Any, _mode: Any, flags: int) -> None:
        real = _followed(path)
        if real is None or self.is_unguarded(real) or (flags & os.O_EXCL and os.path.lexists(real)):
            return
        self.before_write(real, truncates=bool(flags & os.O_TRUNC), creates=bool(flags & os.O_CREAT))

    def on_native_write(self, file: Any, writer: str) -> None:
        if isinstance(file, (str, bytes, os.PathLike)):
            real = _followed(file)
            if real is not None and not real.startswith(self.never):
                self.before_write(real, truncates=True, creates=True, writer=writer)
            return
        real = _followed(getattr(file, "name", None))
        if real in self.known:
            self.note_new(real, writer)

    def on_truncate(self, path: Any, _length: int) -> None:
        real = _followed(path)
        if real is not None and not self.is_unguarded(real):
            self.before_write(real, truncates=False, creates=False)

    def on_chmod(self, path: Any, _mode: int, _dir_fd: int) -> None:
        real = _followed(path)
        if real is not None and not self.is_unguarded(real):
            self.keep_if_small(real, self.cap_bytes)

    def on_sqlite(self, database: Any) -> None:
        real = _followed(database)
        if real is None or real.endswith(os.sep + ":memory:") or self.is_unguarded(real):
            return
        if os.path.lexists(real):
            self.keep_if_small(real, min(self.cap_bytes, _SQLITE_CAP_BYTES))
        elif os.path.isdir(os.path.dirname(real)):
            self.note_new(real)

    def on_remove(self, path: Any, dir_fd: int) -> None:
        self.before_name_goes(_named(path, dir_fd))

    def on_rename(self, source: Any, target: Any, source_fd: int, target_fd: int) -> None:
        old, new = _named(source, source_fd), _named(target, target_fd)
        if old is None or new is None or not os.path.lexists(old):
            return
        if os.path.isdir(old) and not os.path.islink(old):
            self.before_folder_moves(old, new)
            return
        self.before_name_goes(new)
        self.before_name_goes(old)
        if not self.is_unguarded(new):
            self.note_new(new, self.writers.get(old))

    def on_link(self, source: Any, target: Any, source_fd: int, target_fd: int) -> None:
        old, new = _named(source, source_fd), _named(target, target_fd)
        if old is None or new is None or os.path.lexists(new):
            return
        self.before_name_goes(old)
        if not self.is_unguarded(new):
            self.note_new(new)

    def on_symlink(self, _source: Any, target: Any, dir_fd: int) -> None:
        new = _named(target, dir_fd)
        if new is not None and not os.path.lexists(new) and not self.is_unguarded(new):
            self.note_new(new)

    def on_mkdir(self, path: Any, _mode: int, dir_fd: int) -> None:
        new = _named(path, dir_fd)
        if new is not None and not os.path.lexists(new) and not self.is_unguarded(new):
            self.note_new_folder(new)

    def on_rmdir(self, path: Any, dir_fd: int) -> None:
        old = _named(path, dir_fd)
        if old is not None and not self.is_unguarded(old) and os.path.isdir(old):
            self.keep(old, self.copy)

    def is_unguarded(self, path: str) -> bool:
        return path.startswith(self.unguarded) or "/__pycache__" in path

    # -------------------------------------------------------------------------------------- what is done about it

    def before_write(self, path: str, *, truncates: bool, creates: bool, writer: str | None = None) -> None:
        status = _lstat(path)
        if status is None:
            if creates:
                self.note_new(path, writer)
        elif stat.S_ISREG(status.st_mode):
            if path not in self.known and os.access(path, os.W_OK):
                self.keep(path, self.set_aside if truncates else self.copy)
            elif status.st_nlink > 1:
                self.separate(path, status, truncates=truncates)
            if writer is not None:
                self.note_new(path, writer)

    def before_name_goes(self, path: str | None) -> None:
        if path is None or self.is_unguarded(path):
            return
        status = _lstat(path)
        if status is not None and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            self.keep(path, self.link)

    def before_folder_moves(self, old: str, new: str) -> None:
        if self.is_unguarded(new):
            return
        if old in self.folders:
            self.note_new_folder(new)
            for path in [path for path in self.known if path.startswith(old + os.sep)]:
                moved = new + path[len(old) :]
                if path in self.folders:
                    self.note_new_folder(moved)
                else:
                    self.note_new(moved, self.writers.get(path))
        elif not self.is_unguarded(old):
            self.journal.write(old, "directory", kept=new)
            self.known.add(old)

    def note_new(self, path: str, writer: str | None = None) -> None:
        if path in self.known and writer in (None, self.writers.get(path)):
            return
        self.known.add(path)
        self.writers[path] = writer
        with contextlib.suppress(OSError):
            self.journal.write(path, "created", writer=writer, durable=False)

    def note_new_folder(self, path: str) -> None:
        if path in self.known:
            return
        self.known.add(path)
        self.folders.add(path)
        with contextlib.suppress(OSError):
            self.journal.write(path, "directory", durable=False)

    def keep(self, path: str, how: Callable[[str], None]) -> None:
        """Keep the original of `path` unless some process of this launch has done so."""
        if path in self.known:
            return
        try:
            with self.journal.locked():
                self.learn_from_others()
                if path not in self.known:
                    how(path)
                    self.known.add(path)
        except KeepRefused:
            raise
        except OSError as error:
            raise KeepRefused(
                error.errno,
                f"pindiag could not keep the original of this file ({error.strerror}), so it was not changed",
                path,
            ) from error

    def set_aside(self, path: str) -> None:
        """Rename the original away and leave an empty file with its permissions for the truncating open."""
        status = os.lstat(path)
        for kept in self.places(path):
            self.journal.write(path, "set_aside", kept=kept)
            try:
                os.rename(path, kept)
            except OSError:
                continue
            _make_empty(path, status)
            return
        self.copy(path)

    def link(self, path: str) -> None:
        """Give the original a second name; a symbolic link is kept as one.

        On another filesystem it is copied instead, and only what is too large for that gets its second name beside
        it: the script may be about to remove the whole folder.
        """
        inside, beside = self.places(path)
        if self.give_name(path, inside):
            return
        if os.lstat(path).st_size <= self.cap_bytes or not self.give_name(path, beside):
            self.copy(path)

    def give_name(self, path: str, kept: str) -> bool:
        self.journal.write(path, "linked", kept=kept)
        try:
            os.link(path, kept, follow_symlinks=False)
        except OSError:
            return False
        self.shared.add(_inode(os.lstat(kept)))
        return True

    def copy(self, path: str) -> None:
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode):
            self.refuse_above_cap(path, status.st_size)
        kept = self.places(path)[0]
        self.journal.write(path, "copied", kept=kept)
        _copy(path, kept, kept + ".part")

    def keep_if_small(self, path: str, cap_bytes: int) -> None:
        status = _lstat(path)
        if status is None or not stat.S_ISREG(status.st_mode) or path in self.known:
            return
        if status.st_size <= cap_bytes:
            self.keep(path, self.copy)
        else:
            self.known.add(path)
            self.journal.write(path, "left", reason=f"{status.st_size} bytes are too many to copy beforehand")

    def separate(self, path: str, status: os.stat_result, *, truncates: bool) -> None:
        """Part a file that the script may change in place from an original that it shares its content with."""
        with self.journal.locked():
            self.learn_from_others()
        if _inode(status) not in self.shared:
            return
        part = self.places(path)[1]
        self.journal.write(part, "created", durable=False)
        if truncates:
            _make_empty(part, status)
            os.replace(part, path)
        else:
            self.refuse_above_cap(path, status.st_size)
            _copy(path, path, part)

    def refuse_above_cap(self, path: str, size_bytes: int) -> None:
        if size_bytes <= self.cap_bytes:
            return
        needed = -(-size_bytes // (1 << 30))
        reason = (
            f"pindiag refused to let this file be changed in place, because with {size_bytes} bytes it is larger than "
            f"what is copied beforehand; `--keep-cap {needed}GiB` allows it"
        )
        self.journal.write(path, "refused", reason=reason)
        raise KeepRefused(errno.EPERM, reason, path)

    def places(self, path: str) -> tuple[str, str]:
        """Fresh names for an original: in the run directory, and beside it for another filesystem."""
        folder, name = os.path.split(path)
        number = f"{os.getpid()}-{next(self.numbers)}"
        launch = os.path.basename(self.kept)
        return (
            os.path.join(self.kept, f"{number}-{name[-100:]}"),
            os.path.join(folder, f".pindiag-{launch}-{number}-{name[-100:]}"),
        )

    def learn_from_others(self) -> None:
        for record in self.journal.of_others():
            if record["action"] != "refused":
                self.known.add(record["path"])
            if record["action"] == "linked":
                status = _lstat(record["kept"])
                if status is not None:
                    self.shared.add(_inode(status))


class _Journal:
    """`files-NNN-PID.jsonl`, one a process; the processes of a launch read each other's."""

    def __init__(self, folder: str, launch: int) -> None:
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.launch = launch
        self.prefix = f"files-{launch:03d}-"
        self.rank = int(os.environ.get("RANK", "0"))
        self.read_bytes: dict[str, int] = {}

    def write(
        self,
        path: str,
        action: str,
        *,
        kept: str | None = None,
        writer: str | None = None,
        reason: str | None = None,
        durable: bool = True,
    ) -> None:
        """Append a record; durable ones are on disk when this returns.

        The file is opened each time: a script that closes all descriptors must not get ours into one of its files.
        """
        record = {
            "type": "file_touched",
            "launch": self.launch,
            "t_ns": time.monotonic_ns(),
            "rank": self.rank,
            "path": path,
            "action": action,
            "kept": kept,
            "writer": writer,
            "reason": reason,
        }
        try:
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError as error:
            raise OSError(errno.EILSEQ, "its name is not valid UTF-8", path) from error
        name = os.path.join(self.folder, f"{self.prefix}{os.getpid()}.jsonl")
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.write(fd, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude the other threads and processes of the launch."""
        fd = os.open(os.path.join(self.folder, f"{self.prefix[:-1]}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def of_others(self) -> Iterator[dict[str, Any]]:
        """Records that other processes of the launch have written since the last call."""
        own = f"{self.prefix}{os.getpid()}.jsonl"
        for name in os.listdir(self.folder):
            if not name.startswith(self.prefix) or not name.endswith(".jsonl") or name == own:
                continue
            with open(os.path.join(self.folder, name), "rb") as journal:
                journal.seek(self.read_bytes.get(name, 0))
                whole, end, _ = journal.read().rpartition(b"\n")
            self.read_bytes[name] = self.read_bytes.get(name, 0) + len(whole) + len(end)
            yield from _records(whole)


def _records(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        with contextlib.suppress(ValueError):  # cut by a full disk
            yield json.loads(line)


def _cache_folders() -> tuple[str, ...]:
    """Folders in which libraries keep what they can make again, unless the target works inside one."""
    home = os.path.expanduser("~")
    names = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "MPLCONFIGDIR", "NUMBA_CACHE_DIR")
    folders = [os.environ[name] for name in names if os.environ.get(name)]
    folders += [os.path.join(home, name) for name in (".cache", ".triton", ".nv")]
    working = os.getcwd() + os.sep
    found = (os.path.realpath(folder) + os.sep for folder in folders)
    return tuple(folder for folder in found if not working.startswith(folder))


def _followed(path: Any) -> str | None:
    """Absolute path of the file that an open would reach; None for descriptors."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    return os.path.realpath(os.fsdecode(path))


def _named(path: Any, dir_fd: int) -> str | None:
    """Absolute path of a directory entry, itself not followed where it is a symbolic link."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    text = os.fsdecode(path).rstrip(os.sep)
    if dir_fd >= 0 and not os.path.isabs(text):
        try:
            text = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), text)
        except OSError:
            return None
    folder, name = os.path.split(text)
    return os.path.join(os.path.realpath(folder or os.curdir), name)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _make_empty(path: str, like: os.stat_result) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _give_to(fd, like)
        os.fchmod(fd, stat.S_IMODE(like.st_mode))
    finally:
        os.close(fd)


def _copy(path: str, target: str, part: str) -> None:
    """Copy a file, a symbolic link or an empty folder so that `target` is whole as soon as it exists."""
    status = os.lstat(path)
    if stat.S_ISDIR(status.st_mode):
        os.mkdir(part)
        shutil.copystat(path, part)
    else:
        shutil.copy2(path, part, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        _give_to(part, status)
    os.replace(part, target)


def _give_to(path: str | int, like: os.stat_result) -> None:
    if like.st_uid != os.geteuid() or like.st_gid != os.getegid():
        with contextlib.suppress(OSError):
            os.chown(path, like.st_uid, like.st_gid)
