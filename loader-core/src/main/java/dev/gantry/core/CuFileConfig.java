// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Settings of libcufile for [Session#open(CuFileConfig)], by the keys of libcufile's
/// configuration file `cufile.json`.
///
/// The session writes the settings to a file that only this user can read, and points libcufile to
/// this file when the session opens the driver; libcufile then does not read `/etc/cufile.json`.
/// Settings that are not given have libcufile's defaults. Immutable.
public final class CuFileConfig {
  private static final long ANY = Long.MAX_VALUE;
  private static final String FILE_SYSTEMS = "fs.(beegfs|gpfs|lustre|nfs|scatefs|weka)";
  private static final String POOL_SIZES = "properties.posix_pool_slab_size_kb";
  private static final String POOL_COUNTS = "properties.posix_pool_slab_count";
  private static final String GPU_POOL = "properties.gpu_bounce_buffer_slab_config.slab_";

  private static final Kind FLAG = value -> value instanceof Boolean ? null : "be true or false";
  private static final Kind TEXT =
      value -> value instanceof String text && !text.isBlank() ? null : "be text";
  private static final Kind HEXADECIMAL =
      value ->
          value instanceof String text && text.matches("0x[0-9a-fA-F]{1,8}")
              ? null
              : "be 0x and up to 8 hexadecimal digits";

  private static final Kind LOG_SIZE =
      value ->
          Integer.valueOf(-1).equals(value) || whole(1, 4096, 1).rule(value) == null
              ? null
              : "be -1 or 1 to 4096";

  /// The key of a JSON object that holds one object for each mount point. A mount point's name may
  /// contain dots.
  private static final String MOUNTS = "mount_table";

  /// The keys that libcufile 1.15 to 1.19 know, as patterns, and the values that each key accepts.
  /// `docs/cufile-json.md` explains the keys.
  ///
  /// Source: GPUDirect Storage configuration guide; the ranges are the ones that libcufile 1.15
  /// reports.
  private static final List<Setting> SETTINGS =
      List.of(
          new Setting("logging.dir", TEXT),
          new Setting("logging.level", choice("ERROR", "WARN", "NOTICE", "INFO", "DEBUG", "TRACE")),
          new Setting("logging.max_file_size_mb", LOG_SIZE),
          new Setting("profile.nvtx", FLAG),
          new Setting("profile.cufile_stats", whole(0, 3, 1)),
          new Setting("execution.max_io_queue_depth", whole(1, 256, 1)),
          new Setting("execution.max_io_threads", whole(0, 32, 1)),
          new Setting("execution.parallel_io", FLAG),
          new Setting("execution.min_io_threshold_size_kb", whole(4, 4_294_967_292L, 4)),
          new Setting("execution.max_request_parallelism", whole(0, 8, 1)),
          new Setting("properties.max_direct_io_size_kb", whole(64, 16_384, 64)),
          new Setting("properties.max_device_cache_size_kb", whole(0, ANY, 4)),
          new Setting("properties.per_buffer_cache_size_kb", whole(64, 16_384, 64)),
          new Setting("properties.max_device_pinned_mem_size_kb", whole(64, ANY, 4)),
          new Setting("properties.poll_mode_max_size_kb", whole(4, ANY, 4)),
          new Setting(
              "properties.(use_poll_mode|allow_compat_mode|force_compat_mode|force_odirect_mode"
                  + "|allow_system_memory|prefer_iouring|use_pci_p2pdma|gds_rdma_write_support"
                  + "|rdma_dynamic_routing)",
              FLAG),
          new Setting("properties.io_batchsize", whole(1, 256, 1)),
          new Setting("properties.max_batch_io_timeout_msecs", whole(1, 1000, 1)),
          new Setting("properties.io_priority", choice("default", "low", "med", "high")),
          new Setting(POOL_SIZES, each(whole(4, ANY, 4))),
          new Setting(GPU_POOL + "size_kb", each(whole(4, ANY, 4))),
          new Setting(GPU_POOL + "count", each(whole(1, Integer.MAX_VALUE, 1))),
          new Setting("properties.(vanilla_posix_io_mode|gds_fallback_io)", FLAG),
          new Setting("block.(nvme|nvmeof|raid|raid1|raid10).use_pci_p2pdma", FLAG),
          new Setting("fs.(nfs|virtiofs).use_pci_p2pdma", FLAG),
          new Setting("sparse.p2p_compat_enable", FLAG),
          new Setting("miscellaneous.enable_static_routing", FLAG),
          new Setting("miscellaneous.static_routing_filepath", TEXT),
          new Setting(POOL_COUNTS, each(whole(1, Integer.MAX_VALUE, 1))),
          new Setting("properties.rdma_dev_addr_list", distinct(TEXT)),
          new Setting(
              "properties.rdma_load_balancing_policy",
              choice("RoundRobin", "FirstFit", "RoundRobinMaxMin", "Randomized")),
          new Setting(
              "properties.rdma_dynamic_routing_order",
              distinct(choice("GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P"))),
          new Setting("properties.rdma_dc_key", HEXADECIMAL),
          new Setting("fs.generic.posix_unaligned_writes", FLAG),
          new Setting("fs.gpfs.(gds_write_support|gds_async_support)", FLAG),
          new Setting("fs.weka.rdma_write_support", FLAG),
          new Setting("fs.(beegfs|lustre|scatefs).posix_gds_min_kb", whole(0, ANY, 4)),
          new Setting(
              FILE_SYSTEMS + "(." + MOUNTS + ".[^\0]+)?.rdma_dev_addr_list", distinct(TEXT)),
          new Setting("denylist.(drivers|devices|mounts|filesystems)", distinct(TEXT)),
          new Setting(
              "miscellaneous.(api_check_aggressive|skip_topology_detection|stream_memops_bypass)",
              FLAG));

  /// A pattern that matches one key or several, and the rule for their values.
  private record Setting(Pattern key, Kind kind) {
    Setting(String key, Kind kind) {
      this(Pattern.compile(key.replace(".", "\\.")), kind);
    }
  }

  /// The rule for the values of a setting.
  @FunctionalInterface
  private interface Kind {
    /// Returns the rule that `value` breaks, worded to follow "must" in a message; null if it breaks none.
    @Nullable String rule(Object value);
  }

  private static Kind whole(long least, long most, long multiple) {
    return value -> {
      if (!(value instanceof Integer || value instanceof Long)) {
        return "be a whole number";
      }
      long number = ((Number) value).longValue();
      if (number < least || number > most) {
        return "be " + (most == ANY ? "at least " + least : least + " to " + most);
      }
      return number % multiple == 0 ? null : "be a multiple of " + multiple;
    };
  }

  private static Kind choice(String... values) {
    return value ->
        List.of(values).contains(value) ? null : "be one of " + String.join(", ", values);
  }

  private static Kind each(Kind kind) {
    return value ->
        value instanceof List<?> all
            ? all.stream().map(kind::rule).filter(Objects::nonNull).findFirst().orElse(null)
            : "be a list";
  }

  /// Accepts a list without duplicate values.
  private static Kind distinct(Kind kind) {
    return value ->
        value instanceof List<?> all && Set.copyOf(all).size() < all.size()
            ? "name each once"
            : each(kind).rule(value);
  }

  private final String json;

  private CuFileConfig(String json) {
    this.json = json;
  }

  /// Makes a configuration from settings by their keys in `cufile.json`. A dot separates an
  /// object's name from a key in it, as in `execution.max_io_threads`.
  ///
  /// @param settings the value of each key: a number, a boolean, a text, or a list of these
  /// @throws MisuseException if libcufile has no such key, or would refuse the value
  public static CuFileConfig of(Map<String, ?> settings) {
    SortedMap<String, Object> root = new TreeMap<>();
    MisuseException.requireGiven("settings", settings);
    settings.forEach((key, value) -> {
      check(key, value);
      put(key, value, root);
    });
    checkPool(settings, POOL_SIZES, POOL_COUNTS);
    checkPool(settings, GPU_POOL + "size_kb", GPU_POOL + "count");
    return new CuFileConfig(text(root));
  }

  /// Makes a configuration from the text of a file `cufile.json`, without checking the text.
  ///
  /// @throws IOException if the file cannot be read
  public static CuFileConfig ofFile(Path cufileJson) throws IOException {
    return new CuFileConfig(
        Files.readString(MisuseException.requireGiven("cufileJson", cufileJson)));
  }

  private static void checkPool(Map<String, ?> settings, String sizesKey, String countsKey) {
    Object sizes = settings.get(sizesKey);
    Object counts = settings.get(countsKey);
    int length = sizes instanceof List<?> all ? all.size() : 0;
    if (length != (counts instanceof List<?> all ? all.size() : 0)
        || (sizes != null && length == 0)) {
      throw new MisuseException(
          sizesKey
              + " must have as many values as "
              + countsKey.substring(countsKey.lastIndexOf('.') + 1)
              + ", and 1 or more (was "
              + sizes
              + " and "
              + counts
              + ")");
    }
  }

  private static void check(String key, @Nullable Object value) {
    if (value == null || (value instanceof List<?> all && all.stream().anyMatch(Objects::isNull))) {
      throw new MisuseException(key + " must be given (was " + value + ")");
    }
    String rule =
        SETTINGS.stream()
            .filter(setting -> setting.key().matcher(key).matches())
            .findFirst()
            .orElseThrow(() ->
                new MisuseException("a setting must be a key of cufile.json (was " + key + ")"))
            .kind()
            .rule(value);
    if (rule != null) {
      throw new MisuseException(key + " must " + rule + " (was " + value + ")");
    }
  }

  @SuppressWarnings("unchecked") // Inner objects are made here.
  private static void put(String key, Object value, SortedMap<String, Object> root) {
    int folder = key.indexOf("." + MOUNTS + ".") + MOUNTS.length() + 2;
    int last = key.lastIndexOf('.');
    SortedMap<String, Object> object = root;
    int from = 0;
    while (from <= last) {
      int end = from == folder ? last : key.indexOf('.', from);
      object =
          (SortedMap<String, Object>)
              object.computeIfAbsent(key.substring(from, end), _ -> new TreeMap<String, Object>());
      from = end + 1;
    }
    object.put(key.substring(from), value);
  }

  private static String text(SortedMap<String, Object> root) {
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
      default -> generator.writePOJO(value);
    }
  }

  /// Returns the text of the file `cufile.json`.
  public String json() {
    return json;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof CuFileConfig config && config.json.equals(json);
  }

  @Override
  public int hashCode() {
    return json.hashCode();
  }

  @Override
  public String toString() {
    return json;
  }
}
