// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/// Settings of libcufile, as its file `cufile.json` has them: for [Session#open(CuFileConfig)].
///
/// The session writes them to a file that only this user can read, and names it to libcufile when it
/// opens the driver; `/etc/cufile.json` is not read then. What is not set has libcufile's own default.
/// `docs/cufile-json.md` has all keys as a table. Immutable.
///
/// Source: GPUDirect Storage configuration guide; ranges as libcufile 1.15 tells them.
public final class CuFileConfig {
  /// What the log has: each level has those before it.
  public enum LogLevel {
    ERROR,
    WARN,
    NOTICE,
    INFO,
    DEBUG,
    TRACE
  }

  /// The priority of copies on the GPU.
  public enum Priority {
    DEFAULT("default"),
    LOW("low"),
    MEDIUM("med"),
    HIGH("high");

    private final String text;

    Priority(String text) {
      this.text = text;
    }

    @Override
    public String toString() {
      return text;
    }
  }

  /// How interfaces for RDMA are chosen.
  public enum RdmaPolicy {
    ROUND_ROBIN("RoundRobin"),
    FIRST_FIT("FirstFit"),
    ROUND_ROBIN_MAX_MIN("RoundRobinMaxMin"),
    RANDOMIZED("Randomized");

    private final String text;

    RdmaPolicy(String text) {
      this.text = text;
    }

    @Override
    public String toString() {
      return text;
    }
  }

  /// Ways between an interface and a GPU.
  public enum Routing {
    GPU_MEM_NVLINKS,
    GPU_MEM,
    SYS_MEM,
    P2P
  }

  /// File systems with settings of their own.
  public enum FileSystem {
    BEEGFS("beegfs"),
    GPFS("gpfs"),
    LUSTRE("lustre"),
    NFS("nfs"),
    SCATEFS("scatefs"),
    WEKA("weka");

    private static final Set<FileSystem> WITH_POSIX_MINIMUM = Set.of(BEEGFS, LUSTRE, SCATEFS);

    private final String text;

    FileSystem(String text) {
      this.text = text;
    }

    @Override
    public String toString() {
      return text;
    }
  }

  /// Objects of JSON are maps, arrays are lists.
  private final SortedMap<String, Object> root;

  private CuFileConfig(SortedMap<String, Object> root) {
    this.root = root;
  }

  public static Builder builder() {
    return new Builder();
  }

  /// The file's text.
  public String json() {
    StringWriter text = new StringWriter();
    try (JsonGenerator generator = new JsonFactory().createGenerator(text)) {
      generator.useDefaultPrettyPrinter();
      write(root, generator);
    } catch (IOException e) {
      throw new UncheckedIOException("a string cannot be written to", e);
    }
    return text.toString();
  }

  private static void write(Object value, JsonGenerator generator) throws IOException {
    switch (value) {
      case Map<?, ?> object -> {
        generator.writeStartObject();
        for (Map.Entry<?, ?> field : object.entrySet()) {
          generator.writeFieldName(field.getKey().toString());
          write(field.getValue(), generator);
        }
        generator.writeEndObject();
      }
      case Collection<?> array -> {
        generator.writeStartArray();
        for (Object element : array) {
          write(element, generator);
        }
        generator.writeEndArray();
      }
      case Long number -> generator.writeNumber(number);
      case Boolean flag -> generator.writeBoolean(flag);
      default -> generator.writeString(value.toString());
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof CuFileConfig config && config.root.equals(root);
  }

  @Override
  public int hashCode() {
    return root.hashCode();
  }

  @Override
  public String toString() {
    return json();
  }

  /// Builds a [CuFileConfig]. For one thread.
  public static final class Builder {
    private final SortedMap<String, Object> root = new TreeMap<>();

    private Builder() {}

    /// `logging.dir`: the folder of libcufile's log, `cufile.log`. Default: the working directory.
    public Builder optLogFolder(Path folder) {
      return set(folder.toAbsolutePath().toString(), "logging", "dir");
    }

    /// `logging.level`: what the log has. Default: `ERROR`.
    public Builder optLogLevel(LogLevel value) {
      return set(value.toString(), "logging", "level");
    }

    /// `profile.nvtx`: whether libcufile marks its calls for Nsight. Default: false.
    public Builder optNvtx(boolean on) {
      return set(on, "profile", "nvtx");
    }

    /// `profile.cufile_stats`: how much libcufile counts: 0 nothing, 1 operations, 2 sizes and times, 3 by GPU. 0 to 3. Default: 0.
    public Builder optStatistics(long value) {
      MisuseException.requireRange("optStatistics", value, 0, 3);
      return set(value, "profile", "cufile_stats");
    }

    /// `execution.max_io_queue_depth`: pieces of requests that wait for libcufile's threads, on each GPU. 1 to 256. Default: 128.
    public Builder optMaxIoQueueDepth(long value) {
      MisuseException.requireRange("optMaxIoQueueDepth", value, 1, 256);
      return set(value, "execution", "max_io_queue_depth");
    }

    /// `execution.max_io_threads`: libcufile's own threads for each GPU; the stream API needs 1 or more. 0 to 32. Default: 0.
    public Builder optMaxIoThreads(long value) {
      MisuseException.requireRange("optMaxIoThreads", value, 0, 32);
      return set(value, "execution", "max_io_threads");
    }

    /// `execution.parallel_io`: whether libcufile's threads share large requests; the stream API needs it. Default: false.
    public Builder optParallelIo(boolean on) {
      return set(on, "execution", "parallel_io");
    }

    /// `execution.min_io_threshold_size_kb`: the smallest piece into which a request is cut for these threads. 4 to 4294967292 KiB, a multiple of 4. Default: 1024.
    public Builder optMinIoThresholdKib(long kib) {
      MisuseException.requireRange("optMinIoThresholdKib", kib, 4, 4_294_967_292L);
      requireMultiple("optMinIoThresholdKib", kib, 4);
      return set(kib, "execution", "min_io_threshold_size_kb");
    }

    /// `execution.max_request_parallelism`: threads that share one request. 0 to 8. Default: 0.
    public Builder optMaxRequestParallelism(long value) {
      MisuseException.requireRange("optMaxRequestParallelism", value, 0, 8);
      return set(value, "execution", "max_request_parallelism");
    }

    /// `properties.max_direct_io_size_kb`: the most that libcufile asks the kernel for at once. 64 to 16384 KiB, a multiple of 64. Default: 1024 without a file.
    public Builder optMaxDirectIoKib(long kib) {
      MisuseException.requireRange("optMaxDirectIoKib", kib, 64, 16384);
      requireMultiple("optMaxDirectIoKib", kib, 64);
      return set(kib, "properties", "max_direct_io_size_kb");
    }

    /// `properties.max_device_cache_size_kb`: memory of each GPU for bounce buffers. 0 or more KiB, a multiple of 4. Default: 131072.
    public Builder optMaxDeviceCacheKib(long kib) {
      MisuseException.requireRange("optMaxDeviceCacheKib", kib, 0, Long.MAX_VALUE);
      requireMultiple("optMaxDeviceCacheKib", kib, 4);
      return set(kib, "properties", "max_device_cache_size_kb");
    }

    /// `properties.per_buffer_cache_size_kb`: the size of one bounce buffer. The cache divided by this should be at least the batch size. 64 to 16384 KiB, a multiple of 64. Default: 1024.
    public Builder optPerBufferCacheKib(long kib) {
      MisuseException.requireRange("optPerBufferCacheKib", kib, 64, 16384);
      requireMultiple("optPerBufferCacheKib", kib, 64);
      return set(kib, "properties", "per_buffer_cache_size_kb");
    }

    /// `properties.max_device_pinned_mem_size_kb`: memory of each GPU that may be registered, bounce buffers included. 64 or more KiB, a multiple of 4. Default: no limit.
    public Builder optMaxDevicePinnedKib(long kib) {
      MisuseException.requireRange("optMaxDevicePinnedKib", kib, 64, Long.MAX_VALUE);
      requireMultiple("optMaxDevicePinnedKib", kib, 4);
      return set(kib, "properties", "max_device_pinned_mem_size_kb");
    }

    /// `properties.use_poll_mode`: whether a thread polls for a small request instead of sleeping. Default: false.
    public Builder optPollMode(boolean on) {
      return set(on, "properties", "use_poll_mode");
    }

    /// `properties.poll_mode_max_size_kb`: the largest request for which it polls. 4 or more KiB, a multiple of 4. Default: 4.
    public Builder optPollModeMaxKib(long kib) {
      MisuseException.requireRange("optPollModeMaxKib", kib, 4, Long.MAX_VALUE);
      requireMultiple("optPollModeMaxKib", kib, 4);
      return set(kib, "properties", "poll_mode_max_size_kb");
    }

    /// `properties.allow_compat_mode`: whether libcufile may copy through the CPU. From 1.14 on Gantry sets this itself, for each transport. Default: true.
    public Builder optAllowCompatMode(boolean on) {
      return set(on, "properties", "allow_compat_mode");
    }

    /// `properties.force_compat_mode`: whether libcufile always copies through the CPU. From 1.14 on Gantry sets this itself. Default: false.
    public Builder optForceCompatMode(boolean on) {
      return set(on, "properties", "force_compat_mode");
    }

    /// `properties.force_odirect_mode`: whether requests that are not aligned go past the page cache too. Default: false.
    public Builder optForceDirect(boolean on) {
      return set(on, "properties", "force_odirect_mode");
    }

    /// `properties.allow_system_memory`: whether host memory may be read into and written from. Default: true.
    public Builder optAllowSystemMemory(boolean on) {
      return set(on, "properties", "allow_system_memory");
    }

    /// `properties.prefer_iouring`: whether copies through the CPU use io_uring. Default: false.
    public Builder optPreferIoUring(boolean on) {
      return set(on, "properties", "prefer_iouring");
    }

    /// `properties.use_pci_p2pdma`: whether the kernel's peer-to-peer DMA serves NVMe disks, without nvidia-fs. Default: false.
    public Builder optPciPeerToPeer(boolean on) {
      return set(on, "properties", "use_pci_p2pdma");
    }

    /// `properties.gds_rdma_write_support`: whether distributed file systems may write by RDMA. Default: true.
    public Builder optRdmaWrites(boolean on) {
      return set(on, "properties", "gds_rdma_write_support");
    }

    /// `properties.io_batchsize`: the most entries of all batches that are under way. 1 to 256. Default: 128.
    public Builder optBatchSize(long value) {
      MisuseException.requireRange("optBatchSize", value, 1, 256);
      return set(value, "properties", "io_batchsize");
    }

    /// `properties.max_batch_io_timeout_msecs`: how long a batch waits for its entries. 1 to 1000 ms. Default: 5.
    public Builder optBatchTimeoutMillis(long millis) {
      MisuseException.requireRange("optBatchTimeoutMillis", millis, 1, 1000);
      return set(millis, "properties", "max_batch_io_timeout_msecs");
    }

    /// `properties.io_priority`: the priority of copies on the GPU beside kernels. Default: `DEFAULT`.
    public Builder optIoPriority(Priority value) {
      return set(value.toString(), "properties", "io_priority");
    }

    /// `properties.rdma_dev_addr_list`: the IPv4 addresses of the interfaces for RDMA. Default: none.
    public Builder optRdmaAddresses(List<String> values) {
      return set(texts("optRdmaAddresses", values), "properties", "rdma_dev_addr_list");
    }

    /// `properties.rdma_load_balancing_policy`: how interfaces are chosen for memory. Default: `ROUND_ROBIN`.
    public Builder optRdmaPolicy(RdmaPolicy value) {
      return set(value.toString(), "properties", "rdma_load_balancing_policy");
    }

    /// `properties.rdma_dynamic_routing`: whether bytes take another way where interface and GPU share no PCIe switch. Default: false.
    public Builder optRdmaDynamicRouting(boolean on) {
      return set(on, "properties", "rdma_dynamic_routing");
    }

    /// `properties.rdma_dynamic_routing_order`: the ways to try, in order, none twice. Default: all, in the order of [Routing].
    public Builder optRdmaRouting(List<Routing> values) {
      return set(texts("optRdmaRouting", values), "properties", "rdma_dynamic_routing_order");
    }

    /// `properties.rdma_dc_key`: the key of RDMA's dynamic connections. Up to 32 bits. Default: 0xffeeddcc.
    public Builder optRdmaKey(long key) {
      MisuseException.requireRange("optRdmaKey", key, 0, 0xffff_ffffL);
      return set("0x" + Long.toHexString(key), "properties", "rdma_dc_key");
    }

    /// `fs.generic.posix_unaligned_writes`: whether writes that are not aligned go through the CPU. Default: false.
    public Builder optUnalignedWritesByPosix(boolean on) {
      return set(on, "fs", "generic", "posix_unaligned_writes");
    }

    /// `fs.gpfs.gds_write_support`: whether IBM Storage Scale is written to directly. Default: false.
    public Builder optGpfsWrites(boolean on) {
      return set(on, "fs", "gpfs", "gds_write_support");
    }

    /// `fs.gpfs.gds_async_support`: whether IBM Storage Scale serves the stream API. Default: true.
    public Builder optGpfsAsync(boolean on) {
      return set(on, "fs", "gpfs", "gds_async_support");
    }

    /// `fs.weka.rdma_write_support`: whether WekaFS is written to by RDMA. Default: false.
    public Builder optWekaRdmaWrites(boolean on) {
      return set(on, "fs", "weka", "rdma_write_support");
    }

    /// `denylist.drivers`: drivers of disks that go through the CPU. Default: none.
    public Builder optDenyDrivers(List<String> values) {
      return set(texts("optDenyDrivers", values), "denylist", "drivers");
    }

    /// `denylist.devices`: disks that go through the CPU, such as `/dev/sdb`. Default: none.
    public Builder optDenyDevices(List<String> values) {
      return set(texts("optDenyDevices", values), "denylist", "devices");
    }

    /// `denylist.mounts`: mounted folders that go through the CPU. Default: none.
    public Builder optDenyMounts(List<String> values) {
      return set(texts("optDenyMounts", values), "denylist", "mounts");
    }

    /// `denylist.filesystems`: kinds of file systems that go through the CPU, such as `nfs`. Default: none.
    public Builder optDenyFileSystems(List<String> values) {
      return set(texts("optDenyFileSystems", values), "denylist", "filesystems");
    }

    /// `miscellaneous.api_check_aggressive`: whether each call checks its arguments more closely, which takes time. Default: false.
    public Builder optCheckAggressively(boolean on) {
      return set(on, "miscellaneous", "api_check_aggressive");
    }

    /// `miscellaneous.skip_topology_detection`: whether the driver opens without looking at the PCIe tree. Default: false.
    public Builder optSkipTopologyDetection(boolean on) {
      return set(on, "miscellaneous", "skip_topology_detection");
    }

    /// `miscellaneous.stream_memops_bypass`: whether the stream API does without memory operations on streams. Default: false.
    public Builder optStreamMemOpsBypass(boolean on) {
      return set(on, "miscellaneous", "stream_memops_bypass");
    }

    /// `properties.posix_pool_slab_size_kb` and `posix_pool_slab_count`: buffers in host memory for
    /// copies through the CPU: their sizes in KiB, multiples of 4, and how many of each. Default: 4,
    /// 1024, 16384 KiB; 128, 64, 64.
    public Builder optPosixBuffers(List<Long> sizesKib, List<Long> counts) {
      if (sizesKib.isEmpty() || sizesKib.size() != counts.size()) {
        throw new MisuseException(
            "optPosixBuffers must have as many sizes as counts, and 1 or more (was %d sizes, %d counts)"
                .formatted(sizesKib.size(), counts.size()));
      }
      for (long kib : sizesKib) {
        MisuseException.requireRange("optPosixBuffers", kib, 4, Long.MAX_VALUE);
        requireMultiple("optPosixBuffers", kib, 4);
      }
      for (long count : counts) {
        MisuseException.requireRange("optPosixBuffers", count, 1, Integer.MAX_VALUE);
      }
      set(List.copyOf(sizesKib), "properties", "posix_pool_slab_size_kb");
      return set(List.copyOf(counts), "properties", "posix_pool_slab_count");
    }

    /// `fs.FILE SYSTEM.rdma_dev_addr_list`: the IPv4 addresses of the interfaces for this file system.
    /// Default: those of all.
    public Builder optRdmaAddresses(FileSystem of, List<String> values) {
      return set(texts("optRdmaAddresses", values), "fs", of.text, "rdma_dev_addr_list");
    }

    /// `fs.FILE SYSTEM.mount_table.MOUNT.rdma_dev_addr_list`: the same for one mounted folder. Default:
    /// those of the file system.
    public Builder optRdmaAddresses(FileSystem of, Path mount, List<String> values) {
      return set(
          texts("optRdmaAddresses", values),
          "fs",
          of.text,
          "mount_table",
          mount.toString(),
          "rdma_dev_addr_list");
    }

    /// `fs.FILE SYSTEM.posix_gds_min_kb`: smaller requests to this file system, BeeGFS, Lustre or
    /// ScaTeFS, go through the CPU. 0 or more KiB, a multiple of 4. Default: 0.
    public Builder optPosixBelowKib(FileSystem of, long kib) {
      if (!FileSystem.WITH_POSIX_MINIMUM.contains(of)) {
        throw new MisuseException(
            "optPosixBelowKib must be of beegfs, lustre or scatefs (was " + of + ")");
      }
      MisuseException.requireRange("optPosixBelowKib", kib, 0, Long.MAX_VALUE);
      requireMultiple("optPosixBelowKib", kib, 4);
      return set(kib, "fs", of.text, "posix_gds_min_kb");
    }

    private static void requireMultiple(String option, long value, long of) {
      if (value % of != 0) {
        throw new MisuseException(option + " must be a multiple of " + of + " (was " + value + ")");
      }
    }

    private static List<String> texts(String option, List<?> values) {
      List<String> texts = values.stream().map(Object::toString).toList();
      if (texts.stream().anyMatch(String::isBlank) || Set.copyOf(texts).size() < texts.size()) {
        throw new MisuseException(option + " must name each once (was " + texts + ")");
      }
      return texts;
    }

    @SuppressWarnings("unchecked") // Inner objects are made here.
    private Builder set(Object value, String... path) {
      SortedMap<String, Object> object = root;
      for (int i = 0; i < path.length - 1; i++) {
        object =
            (SortedMap<String, Object>)
                object.computeIfAbsent(path[i], _ -> new TreeMap<String, Object>());
      }
      object.put(path[path.length - 1], value);
      return this;
    }

    public CuFileConfig build() {
      return new CuFileConfig(copy(root));
    }

    @SuppressWarnings("unchecked") // As above.
    private static SortedMap<String, Object> copy(SortedMap<String, Object> object) {
      SortedMap<String, Object> copy = new TreeMap<>(object);
      copy.replaceAll((_, value) ->
          value instanceof SortedMap<?, ?> inner ? copy((SortedMap<String, Object>) inner) : value);
      return copy;
    }
  }
}
