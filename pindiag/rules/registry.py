"""All rules, listed by hand in the order of their codes."""

from __future__ import annotations

from pindiag.rules.pd101_cpu_bound import cpu_bound
from pindiag.rules.pd102_io_bound import io_bound
from pindiag.rules.pd103_worker_contention import worker_contention
from pindiag.rules.pd104_small_batch import small_batch
from pindiag.rules.pd105_missing_non_blocking import missing_non_blocking
from pindiag.rules.pd106_pageable_copy import pageable_copy
from pindiag.rules.pd107_sync_defeats_overlap import sync_defeats_overlap
from pindiag.rules.pd108_pin_thread_bound import pin_thread_bound
from pindiag.rules.pd109_worker_ipc_bound import worker_ipc_bound
from pindiag.rules.pd110_pinned_alloc import pinned_alloc
from pindiag.rules.pd111_main_thread_pin import main_thread_pin
from pindiag.rules.pd112_batch_not_pinned import batch_not_pinned
from pindiag.rules.pd113_pin_without_accelerator import pin_without_accelerator
from pindiag.rules.pd114_pinned_memory_pressure import pinned_memory_pressure
from pindiag.rules.pd115_worker_startup import worker_startup
from pindiag.rules.pd116_prefetch_depth import prefetch_depth
from pindiag.rules.pd117_collate_bound import collate_bound
from pindiag.rules.pd118_memory_growth import memory_growth
from pindiag.rules.pd119_compute_bound import compute_bound
from pindiag.rules.pd120_launch_bound import launch_bound
from pindiag.rules.pd121_second_loader import second_loader
from pindiag.rules.pd122_unsafe_non_blocking_copy import unsafe_non_blocking_copy
from pindiag.rules.pd123_no_difference import no_difference
from pindiag.rules.pd124_script_error import script_error
from pindiag.rules.pd125_worker_crash import worker_crash
from pindiag.rules.pd126_intraop_threads_lost import intraop_threads_lost
from pindiag.rules.pd127_native_threads_in_workers import native_threads_in_workers
from pindiag.rules.pd128_affinity_collapsed import affinity_collapsed
from pindiag.rules.pd129_cgroup_throttled import cgroup_throttled
from pindiag.rules.pd130_too_many_tensors import too_many_tensors
from pindiag.rules.pd131_fd_exhaustion import fd_exhaustion
from pindiag.rules.pd132_shm_too_small import shm_too_small
from pindiag.rules.pd133_dataset_pickled_per_worker import dataset_pickled_per_worker
from pindiag.rules.pd134_start_method import start_method
from pindiag.rules.pd135_loader_rebuilt import loader_rebuilt
from pindiag.rules.pd136_per_item_overhead import per_item_overhead
from pindiag.rules.pd137_periodic_stall import periodic_stall
from pindiag.rules.pd138_extra_cuda_context import extra_cuda_context
from pindiag.rules.pd139_known_bad_version import known_bad_version
from pindiag.rules.pd140_slow_pcie_link import slow_pcie_link
from pindiag.rules.pd141_wrong_numa_node import wrong_numa_node
from pindiag.rules.pd142_gpu_throttled import gpu_throttled
from pindiag.rules.pd143_misleading_benchmark import misleading_benchmark
from pindiag.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    cpu_bound,
    io_bound,
    worker_contention,
    small_batch,
    missing_non_blocking,
    pageable_copy,
    sync_defeats_overlap,
    pin_thread_bound,
    worker_ipc_bound,
    pinned_alloc,
    main_thread_pin,
    batch_not_pinned,
    pin_without_accelerator,
    pinned_memory_pressure,
    worker_startup,
    prefetch_depth,
    collate_bound,
    memory_growth,
    compute_bound,
    launch_bound,
    second_loader,
    unsafe_non_blocking_copy,
    no_difference,
    script_error,
    worker_crash,
    intraop_threads_lost,
    native_threads_in_workers,
    affinity_collapsed,
    cgroup_throttled,
    too_many_tensors,
    fd_exhaustion,
    shm_too_small,
    dataset_pickled_per_worker,
    start_method,
    loader_rebuilt,
    per_item_overhead,
    periodic_stall,
    extra_cuda_context,
    known_bad_version,
    slow_pcie_link,
    wrong_numa_node,
    gpu_throttled,
    misleading_benchmark,
)
