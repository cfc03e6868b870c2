"""Everything that is stored or passed between layers, as msgspec structs.

Three families live here: what was asked (`RunSpec`, `LaunchOrder`), what happened (`Record`, one line of a
journal each), and what it means (`Report`, the content of report.json). Words are those of DESIGN.md section 2.
A number's name ends in its unit unless it is a count or a ratio.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

Scalar = bool | int | float | str | None
NonBlocking = bool | Literal["mixed"] | None
Isolation = Literal["live", "fresh"]
Failure = Literal["worker_died", "pin_thread_died", "shm_full", "open_files", "unpicklable", "memory"]
Purpose = Literal["discover", "scout", "round", "verify"]
Ablation = Literal["compute_only", "host_batch", "loader_only"]
Tweak = Literal["intraop_threads", "lazy_sync", "worker_threads", "fewer_intraop_threads", "worker_affinity"]
OF_WORKERS: tuple[Tweak, ...] = ("worker_threads", "worker_affinity")
"""Tweaks that change nothing where there are no workers."""
Severity = Literal["high", "medium", "low"]
Status = Literal["confirmed", "suspected", "not_settled", "ruled_out", "not_applicable", "error"]


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A stored value: immutable, keyword-only; unknown keys of newer versions are ignored."""


# ---------------------------------------------------------------------------------------------- what was asked


class Configuration(Base, frozen=True, kw_only=True):
    """Arguments of the training loader; the *baseline* is what the script itself says."""

    num_workers: int
    pin_memory: bool
    non_blocking: NonBlocking
    """None: no transfer call was seen; "mixed": some calls have it, some not."""
    prefetch_factor: int | None
    persistent_workers: bool
    batch_size: int | None

    @property
    def id(self) -> str:
        """Its name, e.g. "nw4-pin1-nb1-pf4-pw"; a prefetch_factor of 2, torch's own default, is left out."""
        parts = [f"nw{self.num_workers}", f"pin{int(self.pin_memory)}"]
        if self.non_blocking is not None:
            parts.append(f"nb{self.non_blocking if isinstance(self.non_blocking, str) else int(self.non_blocking)}")
        if self.num_workers > 0 and self.prefetch_factor not in (None, 2):
            parts.append(f"pf{self.prefetch_factor}")
        return "-".join([*parts, "pw"] if self.persistent_workers else parts)


class Treatment(Base, frozen=True, kw_only=True):
    """What a block runs under.

    `changes` names only what differs from the script as written; it is all that the probe applies, so an empty
    one is the baseline. Beside the loader's arguments and `non_blocking` it may hold what a tweak changes:
    `intraop_threads` (the main thread's number), `lazy_sync` (calls that wait for the device give what they gave
    before), `worker_threads` (the native threads of each worker), `fewer_intraop_threads` (the main thread's number
    where it computes beside workers) and `worker_affinity` (workers get the CPUs of the launch back). An ablation's
    `changes` say how its batches are made: `pin_memory` and `non_blocking` of `host_batch`, `pin_memory` of
    `loader_only`.
    """

    id: str
    kind: Literal["configuration", "ablation", "tweak"]
    configuration: Configuration
    changes: dict[str, bool | int | None] = {}
    ablation: Ablation | None = None
    tweak: Tweak | None = None

    @property
    def competes(self) -> bool:
        """Whether it is a configuration that can be recommended: another batch size changes training itself."""
        return self.kind == "configuration" and "batch_size" not in self.changes


class BlockOrder(Base, frozen=True, kw_only=True):
    """A block to run: settle steps, then counted steps between two device synchronisations.

    With `steps` None the probe fixes the number at the end of settling, before it counts, so that the counted
    part lasts about `seconds` and covers at least two queues.
    """

    block: int
    round: int
    trial: str
    seconds: float = 1.5
    settle_steps: int | None = None
    steps: int | None = None
    treatment: Treatment | None = None
    """In a live launch: what the block runs under. None: whatever the launch runs under."""
    intraop_threads: int | None = None
    """In a live launch: the main thread's number in a fresh process under this treatment (FACTS.md A6), set once the
    block's first batch is there. None: left alone."""
    epochs: int | None = None
    """Of a fresh launch: what is counted is so many natural epochs from the birth of the first iterator, which the
    loader gives as it would the script; `steps` is then what they are expected to have. None: steps."""
    why_seconds: str | None = None
    """Why its length is not the usual one."""


class LaunchOrder(Base, frozen=True, kw_only=True):
    """One start of the target, as `plan` wants it."""

    purpose: Purpose
    """discover: finds the training loader; scout: reads the intra-op threads of a fresh process after its first step,
    and runs no block; round: part of the race; verify: one of a pair that did not choose what it verifies."""
    isolation: Isolation = "fresh"
    """live: the launch runs blocks of many treatments, and is sent more of them while it runs."""
    treatment: Treatment | None
    """None: the script as written (the first launch, and every live one)."""
    patched: bool = False
    """With the run's patch in the files that it edits."""
    blocks: list[BlockOrder]
    """All blocks of a fresh launch; the first ones of a live launch."""
    profile: bool = False
    """A profiler window after the last counted block."""
    natural_epochs: bool = False
    """Epochs end where the script's own would."""
    gates: list[Treatment] = []
    """Configurations whose batches are compared with those of the script as written, after everything else."""
    planned: list[Treatment] = []
    """In the first launch of a round: everything that this round was to run, so that what had no turn is known."""
    skipped: dict[str, str] = {}
    """Beside `planned`: ids of treatments left out, with the reason."""
    predicted: dict[str, float] = {}
    """Beside `planned`: what configurations were predicted to reach at most before they ran, or were left out for it,
    samples/s."""


class NextBlocks(Base, frozen=True, kw_only=True):
    """What a live launch is to do next; with neither blocks nor windows it is stopped."""

    blocks: list[BlockOrder] = []
    windows: list[BlockOrder] = []
    """Profiler windows, one a treatment, after which the launch is stopped: no block may follow them. Only `trial`
    and `treatment` of an order are looked at."""
    gates: list[Treatment] = []
    """Where no block follows: configurations whose batches are compared with those of the script as written."""
    planned: list[Treatment] = []
    """Where a round begins: everything that it is to run, so that what had no turn is known."""
    skipped: dict[str, str] = {}
    """Beside `planned`: ids of treatments left out, with the reason."""
    predicted: dict[str, float] = {}
    """Beside `planned`: what configurations were predicted to reach at most before they ran, or were left out for it,
    samples/s."""


class LoaderKey(Base, frozen=True, kw_only=True):
    """Tells the training loader again in another launch of the same script."""

    location: str
    """file:line of construction, absolute path."""
    ordinal: int
    """How many loaders were made at that place before it."""


class ProbeSpec(Base, frozen=True, kw_only=True):
    """What a launch tells its child: the file whose path is the probe's only argument."""

    launch: int
    target: str
    module: bool
    args: list[str]
    run_directory: str
    pipe_read_fd: int
    pipe_write_fd: int
    treatment: Treatment | None
    blocks: list[BlockOrder]
    profile: bool
    profile_steps: int
    natural_epochs: bool
    loader: LoaderKey | None
    """The training loader where an earlier launch found it."""
    loader_place: str | None
    """`--loader FILE:LINE`."""
    device: str | None
    keep_cap_bytes: int
    """An existing file larger than this is not changed in place."""
    isolation: Isolation = "fresh"
    sources: dict[str, str] = {}
    """Texts that stand in for files of the target, by absolute path."""


class PatchedSources(Base, frozen=True, kw_only=True):
    """What a run that verifies a patch compares; the files themselves are not touched."""

    summary: str
    """Of the change."""
    before: dict[str, str]
    """The texts of the files that it edits, by absolute path."""
    after: dict[str, str]
    loader: LoaderKey | None
    """The training loader in the files after the change: lines may have moved."""
    by_hand: dict[str, bool | int | None] = {}
    """What the patch leaves to the user: pindiag sets it in launches with the patch."""
    lives_on: bool = False
    """Whether its gain is in the epochs after the first, since workers live on."""


class RunSpec(Base, frozen=True, kw_only=True):
    """run.json: what was asked, and on what."""

    schema_version: int = SCHEMA_VERSION
    target: str
    """Absolute path of the script, or the module's name."""
    module: bool
    args: list[str]
    cwd: str
    python: str
    started_utc: str
    """ISO 8601."""
    command: list[str]
    sweep: bool
    grid: str | None
    budget_s: float
    rounds: int
    steps: int | None
    seed: int
    device: str | None
    loader: str | None
    wait_s: float
    verify: bool = True
    fresh: bool = False
    """Every treatment in launches of its own."""
    exhaustive: bool = False
    """The whole grid has its turn, and no configuration is left out for what is predicted of it."""
    keep_cap_bytes: int = 1 << 30
    usable_cpus: int
    pindiag_version: str
    target_sha256: str | None = None
    """Of the target's file when the run began; None: not known, as in runs from before it was noted."""
    home: str = ""
    """Of whoever asked, as `user` and `host`: a report may be made elsewhere, and must not name them."""
    user: str = ""
    host: str = ""
    batch_sizes: list[int] | None = None
    """What `--sweep-batch-size` names; empty: half, twice and four times the script's own; None: not asked for."""
    recording: str | None = None
    """Of a recording that is shown elsewhere: the sentence that says so, before every verdict."""
    patch: PatchedSources | None = None
    """What is verified; None: the run verifies no patch."""


# ---------------------------------------------------------------------------------------------- what happened


class Record(Base, tag_field="type", frozen=True, kw_only=True):
    """One line of a journal. `t_ns` is CLOCK_MONOTONIC, the same for all processes of a machine."""

    launch: int
    t_ns: int
    rank: int = 0


# ...written by the parent (journal/parent.jsonl, journal/sampler-NNN.jsonl)


class Machine(Record, tag="machine", frozen=True, kw_only=True):
    """The machine, read once when the run starts (launch 0)."""

    platform: str
    kernel: str
    logical_cpus: int
    physical_cpus: int | None
    usable_cpus: int
    usable_cpus_reason: str
    """What limits them: "affinity", "cgroup quota", "all"."""
    memory_bytes: int
    memory_available_bytes: int
    cgroup_memory_limit_bytes: int | None
    swap_bytes: int
    shm_bytes: int | None
    shm_free_bytes: int | None
    open_files_limit: int | None
    locked_memory_limit_bytes: int | None
    """RLIMIT_MEMLOCK; None: unlimited or not known."""
    gpus: list[dict[str, Scalar]]
    """One a GPU, from NVML: name, uuid, memory_bytes, driver, pcie_gen, pcie_width, pcie_gen_max, pcie_width_max,
    sm_clock_max_mhz, ordinal (its number in CUDA; None: not visible there), numa_node, local_cpus (CPUs that this
    process may use on its NUMA node)."""
    fingerprint: str
    """A hash that tells equal machines without naming them."""
    missing: dict[str, str] = {}
    """What could not be read, with the reason."""
    not_sampled: dict[str, str] = {}
    """What samples and their processes cannot hold here, with the reason: psi_cpu, psi_io, psi_memory, read_bytes,
    run_delay, storage, throttled."""
    affinity: list[int] | None = None
    """CPUs of the affinity mask."""
    cpu_quota: float | None = None
    """CPUs' worth of time that the control group's quota allows; None: no quota."""
    numa_cpus: dict[str, list[int]] | None = None
    """CPUs of each NUMA node."""


class LaunchBegan(Record, tag="launch_began", frozen=True, kw_only=True):
    """A child was started; with pid 0 it was not, and the LaunchEnded that follows says why."""

    pid: int
    order: LaunchOrder


class LaunchEnded(Record, tag="launch_ended", frozen=True, kw_only=True):
    """A child has ended, and its group is gone."""

    status: Literal["ok", "failed", "interrupted"]
    exit: str
    """In words: "stopped after the schedule", "killed by SIGKILL", "exit status 1", ..."""
    returncode: int | None
    seconds: float
    reason: str | None = None
    """One sentence when it is not ok: out of memory, time-out, the exception's last line, ..."""
    stacks: str | None = None
    """What its processes were at before they were killed for want of progress; None: they were not."""
    under: Configuration | None = None
    """What the loader ran under when the launch failed; None: no configuration, or the launch did not fail."""
    failure: Failure | None = None
    """What kind of failure it was; None: none that is known by name, or it was not told apart yet."""
    worker_death: str | None = None
    """What a worker died of: a signal's name, or "exit status 3"; None: none died, or nobody knows of what."""
    out_of_memory: str | None = None
    """Evidence that the machine or its control group was out of memory."""


class Process(Base, frozen=True, kw_only=True):
    """One process of the target's tree at one moment; counters are cumulative since its start."""

    pid: int
    role: Literal["main", "worker", "other"]
    cpu_s: float | None
    """User and system time."""
    rss_bytes: int | None
    threads: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    minor_faults: int | None
    major_faults: int | None
    run_delay_s: float | None
    """Time spent runnable but waiting for a CPU (/proc/PID/schedstat, all threads)."""
    read_bytes: int | None
    """Bytes fetched from storage (/proc/PID/io)."""
    asked_bytes: int | None = None
    """Bytes that read calls gave it, from storage, the page cache, pipes or sockets (/proc/PID/io rchar)."""
    block_io_delay_s: float | None = None
    """Time spent waiting for block I/O (/proc/PID/stat field 42), where the kernel accounts it."""
    state: str | None = None
    pin_thread_cpu_s: float | None = None
    """CPU time of the thread named pt_data_pin, main process only."""
    reaped_cpu_s: float | None = None
    """CPU time of its children that have ended and that it has waited for."""
    allowed_cpus: str | None = None
    """CPUs that its main thread may run on, a hexadecimal mask: "f" is CPUs 0 to 3; None in older records."""


class Sample(Record, tag="sample", frozen=True, kw_only=True):
    """What the sampler saw at one moment (journal/sampler-NNN.jsonl)."""

    processes: list[Process]
    memory_available_bytes: int | None
    memory_cached_bytes: int | None
    swap_used_bytes: int | None
    shm_used_bytes: int | None
    cgroup_memory_bytes: int | None
    cgroup_throttled_s: float | None
    """Cumulative."""
    psi_cpu_s: float | None
    psi_io_s: float | None
    psi_memory_s: float | None
    """Cumulative seconds in which some task stalled (/proc/pressure)."""
    machine_cpu_s: float | None
    """Cumulative busy CPU seconds of the whole machine."""
    gpu_utilization: float | None
    """Share of NVML's last window in which any kernel ran, 0 to 1."""
    gpu_memory_utilization: float | None
    gpu_memory_bytes: int | None
    gpu_sm_clock_mhz: int | None
    gpu_throttle_reasons: int | None
    pcie_rx_bytes_per_s: int | None
    sampler_cpu_s: float
    """CPU seconds that the sampler itself has used in this launch."""
    gpu_memory_clock_mhz: int | None = None
    gpu_power_w: float | None = None
    pcie_gen: int | None = None
    """Generation of the link at this moment; an idle one saves power."""
    pcie_width: int | None = None
    usable_cpu_s: float | None = None
    """Cumulative busy seconds of the CPUs that the target may run on, by whomever."""
    steal_s: float | None = None
    """Cumulative seconds in which the host ran something else on these CPUs (virtual machines)."""
    own_cpu_s: float | None = None
    """CPU seconds that pindiag's own process has used."""
    cpu_heat_s: float | None = None
    """Cumulative seconds in which heat held the CPUs' clocks down, the mean over packages; None in older records."""
    cpu_clock_mhz: float | None = None
    """Of the fastest of the CPUs that the target may run on; None where nobody tells, in most samples of a machine with
    many, and in older records."""
    open_files: int | None = None
    """Descriptors that the target's main process holds."""
    open_files_limit: int | None = None
    """As many as it may hold, by its own limit now."""


class BlockLoad(Record, tag="block_load", frozen=True, kw_only=True):
    """What ran beside the target while a block counted, from the sampler; written before the next block is chosen."""

    block: int
    trial: str
    seconds: float
    """Between the samples that it comes from."""
    cpus: int | None
    """CPUs that the target may run on."""
    target_cpus: float | None
    """CPU seconds a second of the target's processes, those that have ended meanwhile included."""
    foreign_cpus: float | None
    """The same of all that is neither the target's nor pindiag's, on the CPUs that the target may run on."""
    stolen_cpus: float | None
    """CPUs' worth that the host of a virtual machine gave to others."""
    queued_share: float | None
    """Part of the CPU time which the target's processes wanted that they spent waiting for a CPU."""
    throttled_share: float | None
    """Seconds a second in which the CPU quota held tasks of the control group back."""
    quota_cpus: float | None
    """What the quota allows; None: no quota."""
    gpu_slowed_share: float | None
    """Share of the samples in which heat, the power brake or a hardware slowdown held the GPU's clocks down."""
    gpu_sm_clock_mhz: float | None
    cpu_slowed_share: float | None = None
    """Part of the time in which heat held the CPUs' clocks down; None in records made before it was measured."""
    cpu_clock_mhz: float | None = None
    """Of the fastest of the CPUs that the target may run on, the mean over samples; None in older records."""
    worker_threads: int | None = None
    """Most threads of one worker; None without workers."""
    worker_allowed_cpus: int | None = None
    """CPUs on which some worker may run; None without workers."""
    missing: dict[str, str] = {}
    """Field to the reason why it is null."""


class MemoryRead(Record, tag="memory", frozen=True, kw_only=True):
    """Proportional set sizes, read while a block begins to settle, or while the target pauses at its end."""

    block: int
    trial: str
    pss_bytes: int | None
    """Sum over the target's tree."""
    worker_pss_bytes: int | None
    shm_bytes: int | None
    """Shared memory mapped by the tree, counted once (Pss_Shmem)."""
    reason: str | None = None
    phase: Literal["settling", "counted"] = "counted"
    """Of the block."""


class StorageSeen(Record, tag="storage_seen", frozen=True, kw_only=True):
    """Files of one mount, which makers of batches had open for reading or mapped; once a launch, mount and way."""

    filesystem: str
    """"ext4", "nfs4", "overlay", "fuse.s3fs", ..."""
    device: str | None
    """Block device, e.g. "/dev/nvme0n1p2"; None where there is none, as on a network."""
    rotational: bool | None
    """Whether the device turns; None where the kernel does not tell."""
    how: Literal["open", "mapped"]


class BlocksOrdered(Record, tag="blocks_ordered", frozen=True, kw_only=True):
    """A live launch was told what to do next, at the end of a block."""

    next: NextBlocks


class TreatmentRefused(Record, tag="treatment_refused", frozen=True, kw_only=True):
    """A block of a live launch was not run, because the machine could not hold it; the next one took its place."""

    block: int
    trial: str
    reason: str


class FilesSettled(Record, tag="files_settled", frozen=True, kw_only=True):
    """The user's files were put back after a launch; new ones moved or listed."""

    restored: list[str]
    moved: list[str]
    listed: list[str]
    failed: dict[str, str] = {}


class RunEnded(Record, tag="run_ended", frozen=True, kw_only=True):
    """The last record of a run that ended in order (launch 0)."""

    status: Literal["ok", "failed", "interrupted"]
    reason: str | None = None


class RunResumed(Record, tag="run_resumed", frozen=True, kw_only=True):
    """A run that had been killed or interrupted goes on (launch 0)."""

    launches: int
    """How many there had been; later ones have higher numbers."""
    clock_back_ns: int = 0
    """How far the clock lies behind what stands in the journal already, where the machine was started again: records
    from before are read as so much earlier."""


# ...written by the probe (journal/launch-NNN-PID.jsonl), some also sent over the pipe


class LaunchStarted(Record, tag="launch_started", frozen=True, kw_only=True):
    """The probe is installed; the target's first line has not run yet."""

    pid: int
    python_version: str
    torch_version: str
    cuda_version: str | None
    allocator_settings: str | None = None
    """PYTORCH_CUDA_ALLOC_CONF or its newer name as the target found it; None: neither was set, or it was not noted."""


class LoaderMade(Record, tag="loader_made", frozen=True, kw_only=True):
    """A DataLoader was constructed."""

    loader: int
    """Number of the loader in this launch, by first construction."""
    key: LoaderKey
    class_name: str
    dataset_class: str
    configuration: Configuration
    """As given to the constructor; `non_blocking` is None."""
    maker: str | None = None
    """The library's module that made it of its own accord, e.g. "transformers.trainer"; None: the script did."""


class LoaderIterated(Record, tag="loader_iterated", frozen=True, kw_only=True):
    """An iterator over a DataLoader was born."""

    loader: int
    iterator: int
    configuration: Configuration
    """In effect in that iterator: `pin_memory` is what it really does."""
    startup_ms: float
    """Time in `__iter__`: workers forked or spawned."""
    first_batch_ms: float | None
    """From the call of `__iter__` to the first batch."""
    start_method: str | None
    worker_pids: list[int]
    trial: str | None = None
    """The treatment that it serves, in a live launch."""
    pickle_ms: float | None = None
    """Pickling its workers, the dataset with each of them; None where they were forked."""
    pickle_bytes: int | None = None
    batch_pinned: bool | None = None
    """Whether all tensors of its first batch were pinned; None where none was to be."""


class LoaderSeen(Record, tag="loader_seen", frozen=True, kw_only=True):
    """An iterator over a loader that does not train was exhausted, or the launch has ended."""

    loader: int
    iterator: int
    batches: int
    wait_ms: float
    """Time in `__iter__` and in `next()`."""
    seconds: float
    """From the call of `__iter__` to its exhaustion, or to its last batch."""
    whole: bool
    """Whether it was exhausted."""
    training_batches: int = 0
    """What the training loader gave meanwhile."""


class LoaderChosen(Record, tag="loader_chosen", frozen=True, kw_only=True):
    """The training loader is known; blocks can begin. Also sent over the pipe."""

    loader: int
    key: LoaderKey
    why: str
    others: list[str]
    configuration: Configuration
    """The baseline (in a launch under a treatment: what it made of it)."""
    batches_per_epoch: int | None
    dataset_samples: int | None
    batch_samples: int
    sample_bytes: int
    batch_bytes: int
    tensors: int
    """Tensors in one batch."""
    iterable: bool
    dataset_class: str
    start_method: str | None
    accelerator: str | None
    """Device type torch offers: "cuda", "mps", ...; None where there is none."""
    device: str | None
    """Where the script moves its batches, e.g. "cuda:0"; None where it moves none."""
    device_name: str | None
    intraop_threads: int | None
    """Read from the OpenMP library by ctypes, never by torch.get_num_threads() (FACTS.md A6)."""
    fetches_batches: bool | None = None
    """Whether the dataset is asked for whole batches: it has `__getitems__`, is iterable, or torch makes no batches;
    None: not noted."""


class ClockSeen(Base, frozen=True, kw_only=True):
    """Two readings of a clock around a training step, in one pass through the loop, as the script has them."""

    started: int
    """Line of the first one, after the batch has come."""
    read: int
    """Line of the second one."""
    wait_is_timed: bool
    """Whether another reading, before the first one, tells how long the batch took to come."""


class TrainingLoop(Record, tag="training_loop", frozen=True, kw_only=True):
    """The training loop as it is written; in the first launch, where it is a `for` of the target's own."""

    location: str
    """file:line, absolute path."""
    last_line: int
    clocks: list[ClockSeen]
    rebuilt: bool | None
    """Whether each pass of a loop around it makes the loader anew; None: not known."""


class ContextsSeen(Record, tag="contexts_seen", frozen=True, kw_only=True):
    """GPUs on which a process of the target has a CUDA context; once a process, of workers only where there is one."""

    pid: int
    worker: int | None
    """Number of the worker; None: the main process."""
    devices: list[int]
    """As CUDA numbers them in this process."""


class FirstStep(Record, tag="first_step", frozen=True, kw_only=True):
    """The first training step is done: what came before does not count against the budget. Also on the pipe."""


class TreatmentApplied(Record, tag="treatment_applied", frozen=True, kw_only=True):
    """What the probe changed, and what it could not."""

    trial: str
    applied: dict[str, bool | int | None]
    refused: dict[str, str]
    """Name of the change to the reason."""
    how: str
    """"cloned at iteration", "changed at construction", "nothing to change"."""


class DatasetChanged(Record, tag="dataset_changed", frozen=True, kw_only=True):
    """The dataset was not as before after it had served in the main process (no workers). Also on the pipe.

    Workers forked from now on inherit what it has become, so no later block of this launch tells about other
    treatments.
    """

    trial: str
    block: int
    what: str
    """The first difference found, e.g. "cache: 0 entries before, 640 after"."""


class BlockPhase(Record, tag="block_phase", frozen=True, kw_only=True):
    """A block settles, counts, or has stopped counting. Also on the pipe (the sampler reads at these moments)."""

    block: int
    trial: str
    phase: Literal["settling", "counting", "counted"]


class TransferSite(Base, frozen=True, kw_only=True):
    """Host-to-device calls of one place in one block."""

    location: str
    calls: int
    bytes: int
    ms: float
    """Time in the calls on the main thread."""
    pinned_calls: int
    non_blocking_calls: int
    kind: str = "to"
    """ "to" (`cuda` too), whose `non_blocking` treatments set, or "copy_"."""


class PinSite(Base, frozen=True, kw_only=True):
    """The script's own calls of pin_memory at one place in the main thread, in one block."""

    location: str
    calls: int
    bytes: int
    ms: float


class SyncSite(Base, frozen=True, kw_only=True):
    """Calls at one place that wait for the device, in one block."""

    location: str
    kind: str
    calls: int
    ms: float
    lazy_calls: int = 0
    """Calls among them that the tweak `lazy_sync` answered without waiting."""


class PinThread(Base, frozen=True, kw_only=True):
    """What the pin thread (or, without workers, the main thread) did in the counted part."""

    batches: int
    receive_ms: float
    """Taking a batch that is there from the workers' queue: reading, unpickling and mapping."""
    pin_ms: float
    """Pinning it: allocating the pinned memory and copying, in one call."""
    idle_ms: float
    """Waiting until the workers' queue has something."""
    in_main_thread: bool


class HostAllocator(Base, frozen=True, kw_only=True):
    """Difference of torch.cuda.host_memory_stats() over the counted part, and its level at the end."""

    allocations: int
    alloc_ms: float
    active_bytes: int | None
    reserved_bytes: int | None


class Starvation(Base, frozen=True, kw_only=True):
    """What events of the device's own clock say of the waits for batches in a block, in a sample of its counted steps.

    Starved is the time in which the stream that the training loop runs on had nothing left to do while the loop waited
    for its batch. Work on other streams goes unseen.
    """

    device: str
    """Where the batches go, e.g. "cuda:0"."""
    sampled_steps: int
    starved_ms: float
    """Total of the sampled steps."""
    wait_ms: float
    """How long the loop waited in the same steps; never less than `starved_ms`."""
    cost_us: float
    """What sampling a step costs the main thread: two events recorded, and read later."""


class WholeEpochs(Base, frozen=True, kw_only=True):
    """A block that covers whole epochs: what the script does between and beside its steps counts too."""

    epochs: int
    startup_s: float
    """From the birth of the first iterator to its first batch."""
    steady_steps: int
    """Of the counted steps, those after each epoch's queue had turned over: what a block of steps would count."""
    steady_samples: int
    steady_seconds: float
    """Of these; what the script did away from its loader is left out."""


class Block(Record, tag="block", frozen=True, kw_only=True):
    """A block is done. Also on the pipe. Totals are over the counted steps."""

    block: int
    trial: str
    round: int
    settle_steps: int
    steps: int
    samples: int
    started_ns: int
    ended_ns: int
    seconds: float
    """Counted time, synchronisations at both ends included, gaps between epochs left out."""
    gap_s: float
    """Time between epochs inside the block, not counted."""
    status: Literal["counted", "short", "failed"]
    """short: the script ended before the block's length; counted when it still covers two queues."""
    reason: str | None
    wait_ms: float
    wait_cpu_ms: float
    """Part of the wait in which the main thread was on CPU."""
    transfer_ms: float
    synchronise_ms: float
    optimizer_ms: float
    main_cpu_ms: float
    """CPU time of the main thread."""
    step_ms: list[float]
    """Each counted step (at most the first 2 000)."""
    step_wait_ms: list[float]
    transfers: list[TransferSite]
    syncs: list[SyncSite]
    pin_thread: PinThread | None
    host_allocator: HostAllocator | None
    missing: dict[str, str]
    """Field to the reason why it is null."""
    probe_us_per_step: float
    """The probe's own time in the main thread, measured in this block."""
    hand_pin_ms: float | None = None
    """Time of the main thread in the script's own calls of pin_memory; None in records made before it was measured."""
    pins: list[PinSite] = []
    starvation: Starvation | None = None
    """None in records made before it was measured, and where `missing` says why."""
    looked_at_steps: int | None = None
    """Counted steps, drawn at random, whose parts were measured: transfers, optimizer, CPU time of the wait. The totals
    of these are reckoned for all steps; None: all were looked at."""
    intraop_threads: int | None = None
    """Of the main thread at the block's end, read by ctypes (FACTS.md A6)."""
    notes: list[str] = []
    """What a reader should know of how it was served, e.g. that replayed batches were copied for each step because
    the script changes them in place."""
    epochs: WholeEpochs | None = None
    """Where whole epochs were counted: `started_ns` is then the birth of the first iterator, `gap_s` the first
    training step, and every other moment up to `ended_ns` counts. None: steps were."""


class Window(Record, tag="window", frozen=True, kw_only=True):
    """A torch.profiler window, after the last counted block."""

    trial: str
    steps: int
    trace: str | None
    """Path inside the run directory."""
    reason: str | None
    seconds: float


class OpenHandle(Base, frozen=True, kw_only=True):
    """An open file or connection that is reachable from what goes to workers."""

    place: str
    """Where it is found, e.g. "dataset.archive"."""
    kind: str
    """"io.BufferedReader", "zipfile.ZipFile", "h5py.File", ..."""


class PythonObjects(Base, frozen=True, kw_only=True):
    """A large container of Python objects in a dataset: reading one of them writes its reference count."""

    place: str
    """Where it is found, e.g. "dataset.records"."""
    kind: str
    """"list", "dict", ..."""
    items: int
    of: str
    """What its first item is, e.g. "dict"."""


class HandlesOpen(Record, tag="handles_open", frozen=True, kw_only=True):
    """What a loader's dataset and collate_fn held open when it was first iterated over: forked workers share it."""

    loader: int
    handles: list[OpenHandle]
    objects: list[PythonObjects] | None = None
    """What of the dataset they share only until they read it; None: not looked for."""
    collate_place: str | None = None
    """file:line of the collate_fn, absolute path; None where it is not the target's own."""


class Rewritten(Base, frozen=True, kw_only=True):
    """Host memory that was written again after it was copied to a device."""

    location: str
    """Of the copy."""
    kind: str
    """"to" or "copy_", as in `TransferSite`."""
    non_blocking: bool
    pinned: bool
    of_batch: bool
    """The loader gave it in that step and not in the one before, so that `pin_memory` decides whether it is pinned."""
    waited: bool
    """A call waited for the device between the copy and the moment in which the change was seen."""
    times: int


class BuffersWatched(Record, tag="buffers_watched", frozen=True, kw_only=True):
    """What was copied to a device in the first steps, of the script as written, and written again."""

    batches: int
    copies: int
    rewritten: list[Rewritten]


class GateBatch(Base, frozen=True, kw_only=True):
    """One batch that the gate fetched."""

    batch: int
    """Number of its index batch; for iterable datasets its place."""
    layout: str
    """Digest of the types and shapes in it."""
    content: str
    """Digest of its numbers and texts."""
    bytes: int
    """How much of it was read."""


class GatePass(Record, tag="gate_pass", frozen=True, kw_only=True):
    """The gate has fetched its index batches once. Also on the pipe."""

    trial: str
    """The script as written, a second time where not all batches are equal, or a configuration."""
    workers: int = 0
    start_method: str | None = None
    """How workers start here, also where there are none."""
    iterable: bool = False
    backwards: bool = False
    """The index batches in reverse order."""
    batches: list[GateBatch] = []
    changed_later: int = 0
    """Batches that were no longer the same when the next one had come: the loader writes into their memory again."""
    pinned: bool = False
    """Whether a tensor of them was pinned."""
    shared_files: list[str] | None = None
    """Files that were open before training and whose position, shared by all forked workers, moved; None: not known."""
    raised: str | None = None
    """The exception that ended it early."""
    reason: str | None = None
    """Why it could not begin."""


class Unmeasured(Record, tag="unmeasured", frozen=True, kw_only=True):
    """Something that could not be measured or changed in this launch."""

    key: str
    reason: str


class FileTouched(Record, tag="file_touched", frozen=True, kw_only=True):
    """The guard met a file of the user's, before the file was touched (journal/files-NNN-PID.jsonl)."""

    path: str
    action: Literal["set_aside", "copied", "created", "directory", "linked", "refused", "left"]
    """set_aside: renamed to `kept`; copied / linked: a copy or hard link in `kept`; created: did not exist;
    directory: a new directory, or with `kept` one that was renamed to it; refused: over the cap; left: seen but not
    guarded (see reason)."""
    kept: str | None
    """Path of the original, in kept/NNN/ or beside it."""
    writer: str | None = None
    """"torch.save" or "safetensors" where one of them wrote it."""
    reason: str | None = None


class TargetFailed(Record, tag="target_failed", frozen=True, kw_only=True):
    """The target raised; its traceback without our frames. Also on the pipe."""

    exception: str
    message: str
    traceback: str
    step: int | None
    """Training steps done before."""
    past_natural_end: bool
    """It had been given more steps than its own epochs have."""
    worker_exits: list[int] = []
    """Exit statuses of loader workers that had died by then; negative: the signal that killed one."""


class TargetEnded(Record, tag="target_ended", frozen=True, kw_only=True):
    """The target is over, by itself or stopped by pindiag. Also on the pipe."""

    how: Literal["stopped", "finished", "exit", "failed"]
    status: int
    """The exit status the script gave."""
    steps: int
    epochs: float | None


AnyRecord = (
    Machine
    | LaunchBegan
    | LaunchEnded
    | Sample
    | BlockLoad
    | MemoryRead
    | StorageSeen
    | BlocksOrdered
    | TreatmentRefused
    | FilesSettled
    | RunEnded
    | RunResumed
    | LaunchStarted
    | LoaderMade
    | LoaderIterated
    | LoaderSeen
    | LoaderChosen
    | TrainingLoop
    | ContextsSeen
    | FirstStep
    | TreatmentApplied
    | DatasetChanged
    | BlockPhase
    | Block
    | Window
    | HandlesOpen
    | BuffersWatched
    | GatePass
    | Unmeasured
    | FileTouched
    | TargetFailed
    | TargetEnded
)


class WorkerBatch(Base, frozen=True, kw_only=True):
    """One batch of one worker, from its ring."""

    launch: int
    pid: int
    worker: int
    started_ns: int
    """When fetching began."""
    fetch_ns: int
    """Fetching all samples, collate not included."""
    collate_ns: int
    cpu_ns: int
    """CPU time of the fetching thread over fetch and collate."""
    samples: int
    idle_ns: int | None = None
    """Waiting for its index, since the batch before. None, as all that follow: a ring of pindiag's first format."""
    process_cpu_ns: int | None = None
    """CPU time of all threads of the worker since the batch before; read every few milliseconds at most: 0 between."""
    minor_faults: int | None = None
    """Page faults of the worker since the batch before, served without input or output."""
    major_faults: int | None = None
    """Page faults that had to read."""
    run_delay_ns: int | None = None
    """Time since the batch before in which the fetching thread could run and had no CPU."""
    handed_ns: int | None = None
    """When it was written to the queue's pipe; None where it was not, as all that follow."""
    hand_off_ns: int | None = None
    """In the queue's feeder thread: pickling, which writes tensors to shared memory, and the CPU time of sending."""
    hand_off_cpu_ns: int | None = None
    """CPU time of the feeder thread over pickling and sending."""
    blocked_ns: int | None = None
    """In the feeder thread, beside the hand-off: another worker writes to the pipe, or it is full, because the main
    process takes batches no faster."""
    sent_bytes: int | None = None
    """What went through the pipe: tensors in shared memory are not in it, NumPy arrays and objects are."""


# ---------------------------------------------------------------------------------------------- what it means


class Estimate(Base, frozen=True, kw_only=True):
    """A median or geometric mean with its 95 % interval; the interval is None below three values."""

    median: float
    ci95: tuple[float, float] | None


class Ratio(Base, frozen=True, kw_only=True):
    """Throughput over the baseline's, paired within rounds."""

    ratio: float
    ci95: tuple[float, float] | None
    """t-interval of the log ratios."""
    rounds: int
    p_corrected: float | None = None
    """Two-sided p of "no difference", Holm-corrected over the configurations compared."""


class StageMs(Base, frozen=True, kw_only=True):
    """Main-thread stages of a mean step, in milliseconds; they add up to it. None: not measured."""

    wait: float | None
    transfer: float | None
    synchronise: float | None
    optimizer: float | None
    script: float | None
    pin: float | None = None
    """The script's own pinning; the loader's is part of `wait`."""


class GpuIdle(Base, frozen=True, kw_only=True):
    """What the main thread did while the GPU ran nothing; shares of the profiler window, together `idle_share`."""

    wait: float
    """For the loader."""
    synchronise: float
    """In a call that waits for the device, copies that block among them."""
    launch: float
    """In calls that launch."""
    operators: float
    """In PyTorch's operators, backward among them, on the way to the next launch."""
    python: float
    """Anything else."""


class KernelTime(Base, frozen=True, kw_only=True):
    """Kernels of one name, a mean step of the profiler window."""

    name: str
    """Cut."""
    ms: float
    share: float
    """Of the time of all kernels."""
    calls: float


class GpuStep(Base, frozen=True, kw_only=True):
    """From the profiler window, a mean step."""

    kernel_ms: float | None
    copy_ms: float | None
    busy_share: float | None
    overlap_share: float | None
    """Share of copy time during which a kernel ran."""
    pageable_bytes: int | None
    pinned_bytes: int | None
    copy_gb_per_s: float | None
    synchronise_ms: float | None
    idle_share: float | None
    launches: float | None
    launch_share: float | None = None
    """Part of the window in which the main thread, or its backward pass, was inside a call that launches."""
    idle: GpuIdle | None = None
    """None where the trace shows no call to the runtime."""
    longest_kernels: list[KernelTime] = []
    """The longest first."""


class PinThreadMs(Base, frozen=True, kw_only=True):
    """The pin thread, a mean batch."""

    receive: float | None
    pin: float | None
    idle: float | None


class WorkerMs(Base, frozen=True, kw_only=True):
    """The workers, a mean batch of one worker."""

    fetch: float | None
    collate: float | None
    hand_off: float | None
    idle: float | None


class MemoryBytes(Base, frozen=True, kw_only=True):
    """Memory of the target's processes under one treatment."""

    pss: int | None
    pinned: int | None
    shm: int | None

    @property
    def pinned_and_shared(self) -> int | None:
        """Pinned and shared memory, counted once.

        Linux counts what the CUDA driver pins as shared memory of the process (seen with every recording in
        tests/data/h200: `shm` is never less than `pinned`), so the two are not added.
        """
        known = [part for part in (self.pinned, self.shm) if part is not None]
        return max(known, default=None)

    @property
    def total(self) -> int | None:
        """All of it, counted once: the proportional size holds shared memory; None where that size was not read."""
        return None if self.pss is None else self.pss + max((self.pinned or 0) - (self.shm or 0), 0)


class SamplerFigures(Base, frozen=True, kw_only=True):
    """psutil and NVML over the counted parts of a trial's blocks."""

    samples: int
    cpu_percent: float | None
    """Of all processes of the target; 100 is one core."""
    main_cpu_percent: float | None
    worker_cpu_percent: float | None
    """Mean of one worker."""
    pin_thread_cpu_percent: float | None
    run_delay_share: float | None
    """Run-queue delay of the tree per second of its wanted CPU time (delay / (delay + CPU))."""
    involuntary_switches_per_s: float | None
    major_faults_per_s: float | None
    read_bytes_per_s: float | None
    rss_bytes: int | None
    worker_rss_bytes: int | None
    """Largest resident size of one worker."""
    memory_available_bytes: int | None
    swap_used_bytes: int | None
    psi_cpu_share: float | None
    psi_io_share: float | None
    psi_memory_share: float | None
    gpu_utilization: float | None
    worker_threads: int | None = None
    """Most threads of one worker."""
    worker_allowed_cpus: int | None = None
    """CPUs on which some worker may run, as its main thread is bound."""
    main_allowed_cpus: int | None = None
    """CPUs on which the main thread may run."""
    throttled_share: float | None = None
    """Seconds a second in which the CPU quota held tasks of the control group back."""
    shm_used_bytes: int | None = None
    """Most of /dev/shm that was in use, by whomever."""
    fetched_bytes_per_s: float | None = None
    """What read calls gave those who make batches (workers; without them the main process)."""
    storage_bytes_per_s: float | None = None
    """What of it, and of mapped files, came from storage."""
    gpu_memory_bytes: int | None = None
    """Most of the GPU's memory that was in use, by whomever."""
    gpu_memory_utilization: float | None = None
    """Share of the time in which the GPU's memory was read or written."""
    gpu_sm_clock_mhz: float | None = None
    gpu_memory_clock_mhz: float | None = None
    gpu_power_w: float | None = None
    gpu_slowed_share: float | None = None
    """Share of the samples in which power or heat held the clocks down."""
    gpu_held_back_share: float | None = None
    """The same without the power limit, which what works hardest meets: heat, the power brake, a hardware slowdown."""
    gpu_clock_reasons: str | None = None
    """What held the clocks down, in words; "nothing" where nothing did."""
    pcie_rx_bytes_per_s: float | None = None
    """Towards the GPU."""
    pcie_gen: int | None = None
    """Best that was seen."""
    pcie_width: int | None = None


class ProfilerFigures(Base, frozen=True, kw_only=True):
    """The profiler window of a trial."""

    steps: int
    trace: str | None
    reason: str | None


class Trial(Base, frozen=True, kw_only=True):
    """One treatment and what became of it."""

    id: str
    kind: Literal["configuration", "ablation", "tweak"]
    configuration: Configuration
    ablation: Ablation | None
    tweak: Tweak | None
    isolation: Isolation
    status: Literal["measured", "failed", "skipped", "predicted"]
    reason: str | None
    blocks: list[int]
    """Ids of its counted blocks in the race, all of them live or all of them fresh."""
    steps: int
    samples_per_second: Estimate | None
    versus_baseline: Ratio | None
    predicted_samples_per_second: float | None
    stage_ms: StageMs
    gpu: GpuStep | None
    pin_thread_ms: PinThreadMs | None
    worker_ms: WorkerMs | None
    memory_bytes: MemoryBytes
    sampler: SamplerFigures | None
    profiler: ProfilerFigures | None
    startup_s: float | None
    """From `__iter__` to the first batch."""
    epoch_s: float | None
    """Reckoned for the natural epoch length, start-up included."""
    safety: Safety | None = None
    """None: it is the script as written, or no configuration."""


class BlockFigures(Base, frozen=True, kw_only=True):
    """One block as report.json shows it."""

    id: int
    launch: int
    round: int
    trial: str
    settle_steps: int
    steps: int
    samples: int
    seconds: float
    status: str
    """As its record says, or "left_out": it went well and counts for nothing, because its treatment could not be
    applied, the dataset had changed before it, or something disturbed it and it was repeated."""
    reason: str | None
    """Also what a reader should know of how it was served, and what disturbed it."""
    purpose: Purpose
    journal: str
    """Where its record stands: file name and line."""
    covers: Literal["steps", "whole epochs"] = "steps"


class Evidence(Base, frozen=True, kw_only=True):
    """One figure behind a finding."""

    name: str
    value: Scalar
    unit: str | None
    source: str
    """The blocks, trace or sampler window it comes from."""


class Effect(Base, frozen=True, kw_only=True):
    """What a fix gives."""

    kind: Literal["verified", "measured", "provisional", "predicted"]
    ratio: float
    ci95: tuple[float, float] | None


class Safety(Base, frozen=True, kw_only=True):
    """The gate of DESIGN.md section 7."""

    status: Literal["passed", "failed", "not_checked"]
    reason: str


class Fix(Base, frozen=True, kw_only=True):
    """A change that removes a cause."""

    summary: str
    changes: dict[str, bool | int | None]
    location: str | None
    patch: str | None
    """Unified diff against the user's file."""
    snippet: str | None
    """Where the place cannot be edited safely."""
    effect: Effect | None
    trade_off: str | None
    safety: Safety
    written: str | None = None
    """How `changes` are written where a framework makes the loader: TrainingArguments(dataloader_num_workers=0)."""
    by_hand: list[str] = []
    """Of `changes`: what no patch holds and the snippet says."""


class Finding(Base, frozen=True, kw_only=True):
    """What a rule says about its root cause."""

    rule: str
    """Code, e.g. "PD108"."""
    cause: str
    status: Status
    severity: Severity | None
    title: str
    explanation: str
    evidence: list[Evidence] = []
    counter_evidence: list[Evidence] = []
    consequence_of: str | None = None
    fixes: list[Fix] = []
    reason: str | None = None
    """Why it is not_applicable, or the error."""
    experiment: str | None = None
    """The treatment or command that would settle a suspected cause."""


class Fact(Base, frozen=True, kw_only=True):
    """A derived number; value None has a reason. What rules read."""

    name: str
    value: Scalar
    unit: str | None
    trial: str | None
    source: str
    reason: str | None = None


class Verdict(Base, frozen=True, kw_only=True):
    """The sentence on top."""

    headline: str
    """At most 24 words, plain text."""
    lead: str = ""
    """What goes on from the headline: the change, its place, gain and interval; plain text, code in backticks."""
    possible: str = ""
    """What ceilings say, in plain words."""
    primary_cause: str | None
    confidence: Literal["confirmed", "suspected", "none"]


class OtherLoader(Base, frozen=True, kw_only=True):
    """A loader of the script that does not train; all loaders made at one place count as one."""

    location: str
    dataset_class: str
    configuration: Configuration
    batches: int
    """Seen in all launches."""
    wait_ms: float | None
    """A mean batch: how long the script waited for it, the birth of its iterators included."""
    pass_s: float | None
    """One whole pass, the script's own work on its batches included, median."""
    epoch_share: float | None
    """Of an epoch of training (of the script as written) with one such pass."""
    reason: str | None = None
    """Why figures are missing."""
    wait_share: float | None = None
    """Part of its whole passes in which the script waited for it."""
    step_wait_ms: float | None = None
    """Waiting for it, for each batch of the training loader that was given meanwhile; None where none was."""


class LoaderFigures(Base, frozen=True, kw_only=True):
    """The training loader."""

    chosen: str
    why: str
    others: list[str]
    batches_per_epoch: int | None
    sample_bytes: int | None
    batch_bytes: int | None
    beside: list[OtherLoader] = []
    """What is known of the others."""
    maker: str | None = None
    """The library's module that makes it, e.g. "transformers.trainer"; None: the script does."""


class NoiseFloor(Base, frozen=True, kw_only=True):
    """How far the script as written differs from itself, as a ratio >= 1."""

    ratio: float | None
    source: str


class Ceilings(Base, frozen=True, kw_only=True):
    """Ids of the ablations that ran; their trials hold samples/s and the ratio to the baseline."""

    compute_only: str | None
    host_batch: list[str]
    loader_only: list[str]


class Factor(Base, frozen=True, kw_only=True):
    """One of the article's six factors: its rule of thumb beside what was measured here."""

    name: str
    value: Scalar
    rule_of_thumb: str
    measured: str


class Recommendation(Base, frozen=True, kw_only=True):
    """The cheapest configuration within 2 % of the best, and what comes before it.

    The baseline's id means: keep what you have.
    """

    trial: str
    configuration: Configuration
    versus_baseline: Ratio | None
    firmness: Literal["verified", "measured", "provisional"]
    frontier: list[str]
    fix: Fix | None = None
    """The change that comes first: the line of code that `tweak` stands for, or what makes the configuration of the
    script as written; None: keep what you have, or no gain was shown."""
    tweak: str | None = None
    """The trial of a tweak whose gain is clearly larger than the configuration's; None: the configuration comes first.
    """


class Verification(Base, frozen=True, kw_only=True):
    """Fresh launches of the script as written and of what comes first, in alternating order."""

    trial: str | None = None
    """What was verified: a configuration, or a tweak."""
    pairs: int
    launches: list[int]
    baseline_samples_per_second: list[float]
    recommended_samples_per_second: list[float]
    ratio: float
    ci95: tuple[float, float] | None
    agrees_with_live: bool | None
    """Whether the live ratio lies within the fresh interval over the same steps.

    None without a live ratio or without an interval.
    """
    live_ratio: float | None = None
    """Of the same trial in the live race."""
    live_ci95: tuple[float, float] | None = None
    epochs: int | None = None
    """Natural epochs that each launch covered at least, start-up of workers and what the script does between its
    epochs included; None: the pairs compare blocks of steps."""
    steady_ratio: float | None = None
    """Over the same steps as a live block counts, to be compared with `live_ratio`."""
    steady_ci95: tuple[float, float] | None = None


class PatchVerification(Base, frozen=True, kw_only=True):
    """Fresh launches of the script as it was measured and with the patch in its files, in alternating order."""

    summary: str
    """Of the change."""
    files: list[str]
    """That it edits."""
    pairs: int
    launches: list[int]
    """By their numbers in the journal of the run's folder `patched`."""
    original_samples_per_second: list[float]
    patched_samples_per_second: list[float]
    ratio: float | None
    ci95: tuple[float, float] | None
    epochs: int | None
    """As of `Verification`."""
    reason: str | None = None
    """Why there is no ratio."""
    status: Literal["measured", "not_measured", "failed", "interrupted"] = "measured"
    """failed: no pair is complete because the script failed."""
    by_hand: dict[str, bool | int | None] = {}
    """As of `PatchedSources`."""


class LaunchFigures(Base, frozen=True, kw_only=True):
    """One launch."""

    id: int
    isolation: Isolation
    pid: int
    epochs: float | None
    exit: str
    status: str
    purpose: Purpose | None = None
    """None: its order was not recorded."""
    reason: str | None = None
    """What a reader should know of its end, one sentence; None: it went as planned."""
    stacks: str | None = None
    """What its processes were at, where it was killed for want of progress."""


class NotMeasured(Base, frozen=True, kw_only=True):
    """A null somewhere above, with its reason."""

    key: str
    reason: str


class Overhead(Base, frozen=True, kw_only=True):
    """What measuring cost, measured in this run."""

    probe_us_per_step: float | None
    """In the main thread: time on the clock inside the probe's hooks, over the steps of all counted blocks."""
    share_of_step: float | None
    sampler_cpu_share: float | None
    """CPU seconds a second of the sampler's thread, mean of the launches."""


class TargetFigures(Base, frozen=True, kw_only=True):
    """How the script fared."""

    exit: str
    status: Literal["ok", "failed", "interrupted"]
    files_changed: list[str]
    error: str | None = None
    """The script's own traceback, where it failed under its own configuration."""
    error_step: int | None = None


class Report(Base, frozen=True, kw_only=True):
    """report.json."""

    schema_version: int
    verdict: Verdict
    findings: list[Finding]
    loader: LoaderFigures | None
    baseline: str | None
    trials: list[Trial]
    blocks: list[BlockFigures]
    noise_floor: NoiseFloor
    ceilings: Ceilings
    factors: list[Factor]
    facts: list[Fact]
    recommendation: Recommendation | None
    verification: Verification | None
    ranks: list[dict[str, Any]]
    launches: list[LaunchFigures]
    not_measured: list[NotMeasured]
    overhead: Overhead
    environment: dict[str, Scalar]
    target: TargetFigures
    patch_verification: PatchVerification | None = None
    """None: `pindiag run --verify-patch RUN_DIR` was not asked for."""


class Band(Base, frozen=True, kw_only=True):
    """The counted part of a block on the time axis."""

    block: int
    trial: str
    start_s: float
    end_s: float


class Series(Base, frozen=True, kw_only=True):
    """The machine over the run's time, for the charts; every list is as long as `t_s`."""

    t_s: list[float]
    main_cpu_percent: list[float | None]
    workers_cpu_percent: list[float | None]
    rss_bytes: list[float | None]
    memory_available_bytes: list[float | None]
    gpu_utilization: list[float | None]
    psi_cpu_share: list[float | None]
    psi_io_share: list[float | None]
    psi_memory_share: list[float | None]
    bands: list[Band]


class Span(Base, frozen=True, kw_only=True):
    """One bar of the step timeline."""

    lane: str
    """"main", "pin thread", "copies", "kernels", "worker 0", ..."""
    name: str
    start_ms: float
    end_ms: float


Waits = Literal[
    "main_for_workers",
    "main_for_pin_thread",
    "main_for_loader",
    "main_for_itself",
    "main_for_copies",
    "main_for_gpu",
    "gpu_for_main",
    "all_for_gpu",
]
"""Who waits for whom: `main_for_loader` where it is not known for what of it, `main_for_itself` without workers."""


class SlowStep(Base, frozen=True, kw_only=True):
    """A counted step that took much longer than the median of its block."""

    block: int
    step: int
    """Of the block's counted steps, the first is 1."""
    ms: float
    wait_ms: float
    usual_ms: float
    """Median of the block, as `usual_wait_ms`."""
    usual_wait_ms: float
    handed: bool | None = None
    """Whether a worker handed a batch over while it waited; None where no record tells."""
    worker: int | None = None
    """Whose batch came in last before the wait ended; None, as all that follow, where none did."""
    batch_ms: float | None = None
    """Fetching and collating that batch."""
    usual_batch_ms: float | None = None
    """Median of the block."""
    begun_before_ms: float | None = None
    """How long before the step the worker began that batch; less than 0: after it."""


class Drawing(Base, frozen=True, kw_only=True):
    """What the HTML report draws beyond report.json."""

    series: Series | None
    series_reason: str | None
    timeline: list[Span]
    """Steps in a row whose lengths are nearest the median."""
    timeline_reason: str | None
    timeline_trial: str | None
    timeline_source: str | None = None
    """Where its bars come from, and how exactly lanes are aligned."""
    timeline_steps_ms: list[float] = []
    """Where each of its steps begins, and the last one ends."""
    timeline_waits: Waits | None = None
    """In these steps and some around them; None where it cannot be said."""
    slowest: list[Span] = []
    """The slowest step seen there; empty where none stands out."""
    slowest_over_median: float | None = None
    slowest_steps_ms: list[float] = []
    """As `timeline_steps_ms`, for the slowest."""
    slow_steps: list[SlowStep] = []
    """The slowest of all counted blocks of that trial first, a few of them."""
    slow_count: int = 0
    """All that were as slow, of `step_count`."""
    step_count: int = 0
    slow_every: int | None = None
    """In the block of the slowest one, every so-manieth step is slow; None where they keep no such order."""
    strip_block: int | None = None
    """The block of the slowest step, whose steps these are:"""
    strip_ms: list[float] = []
    strip_wait_ms: list[float] = []


class Analysis(Base, frozen=True, kw_only=True):
    """What the records say, before rules judge it: the fields of `Report` by the same names, and the drawing."""

    loader: LoaderFigures | None
    baseline: str | None
    trials: list[Trial]
    blocks: list[BlockFigures]
    noise_floor: NoiseFloor
    ceilings: Ceilings
    facts: list[Fact]
    recommendation: Recommendation | None
    verification: Verification | None
    ranks: list[dict[str, Any]]
    launches: list[LaunchFigures]
    not_measured: list[NotMeasured]
    overhead: Overhead
    environment: dict[str, Scalar]
    target: TargetFigures
    drawing: Drawing
    patch_verification: PatchVerification | None = None
