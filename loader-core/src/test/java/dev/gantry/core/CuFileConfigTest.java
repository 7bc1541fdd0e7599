// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class CuFileConfigTest {
  /// A value for each setting.
  private static final Map<String, Object> ALL =
      Map.ofEntries(
          entry("logging.dir", "/var/log/gds"),
          entry("logging.level", "DEBUG"),
          entry("profile.nvtx", true),
          entry("profile.cufile_stats", 3),
          entry("execution.max_io_queue_depth", 64),
          entry("execution.max_io_threads", 8),
          entry("execution.parallel_io", true),
          entry("execution.min_io_threshold_size_kb", 4096),
          entry("execution.max_request_parallelism", 2),
          entry("properties.max_direct_io_size_kb", 8192),
          entry("properties.max_device_cache_size_kb", 262_144),
          entry("properties.per_buffer_cache_size_kb", 2048),
          entry("properties.max_device_pinned_mem_size_kb", 33_554_432L),
          entry("properties.use_poll_mode", true),
          entry("properties.poll_mode_max_size_kb", 16),
          entry("properties.allow_compat_mode", false),
          entry("properties.force_compat_mode", false),
          entry("properties.force_odirect_mode", true),
          entry("properties.allow_system_memory", false),
          entry("properties.prefer_iouring", true),
          entry("properties.use_pci_p2pdma", true),
          entry("properties.gds_rdma_write_support", false),
          entry("properties.io_batchsize", 256),
          entry("properties.max_batch_io_timeout_msecs", 50),
          entry("properties.io_priority", "med"),
          entry("properties.rdma_dev_addr_list", List.of("10.0.0.1", "10.0.0.2")),
          entry("properties.rdma_load_balancing_policy", "RoundRobinMaxMin"),
          entry("properties.rdma_dynamic_routing", true),
          entry("properties.rdma_dynamic_routing_order", List.of("P2P", "SYS_MEM")),
          entry("properties.rdma_dc_key", "0xffeeddcc"),
          entry("fs.generic.posix_unaligned_writes", true),
          entry("fs.gpfs.gds_write_support", true),
          entry("fs.gpfs.gds_async_support", false),
          entry("fs.weka.rdma_write_support", true),
          entry("denylist.drivers", List.of("nvme")),
          entry("denylist.devices", List.of("/dev/sdb")),
          entry("denylist.mounts", List.of("/mnt/slow")),
          entry("denylist.filesystems", List.of("nfs", "lustre")),
          entry("miscellaneous.api_check_aggressive", true),
          entry("miscellaneous.skip_topology_detection", true),
          entry("miscellaneous.stream_memops_bypass", true),
          entry("properties.posix_pool_slab_size_kb", List.of(4, 1024)),
          entry("properties.posix_pool_slab_count", List.of(128, 64)),
          entry("properties.gpu_bounce_buffer_slab_config.slab_size_kb", List.of(1024, 16_384)),
          entry("properties.gpu_bounce_buffer_slab_config.slab_count", List.of(128, 4)),
          entry("properties.vanilla_posix_io_mode", false),
          entry("properties.gds_fallback_io", false),
          entry("block.nvme.use_pci_p2pdma", true),
          entry("block.nvmeof.use_pci_p2pdma", true),
          entry("block.raid.use_pci_p2pdma", true),
          entry("block.raid1.use_pci_p2pdma", true),
          entry("block.raid10.use_pci_p2pdma", true),
          entry("fs.virtiofs.use_pci_p2pdma", true),
          entry("fs.nfs.use_pci_p2pdma", true),
          entry("logging.max_file_size_mb", -1),
          entry("sparse.p2p_compat_enable", false),
          entry("miscellaneous.enable_static_routing", true),
          entry("miscellaneous.static_routing_filepath", "/etc/topology.json"),
          entry("fs.lustre.rdma_dev_addr_list", List.of("10.0.1.1")),
          entry("fs.lustre.mount_table./lustre/\"a.b\".rdma_dev_addr_list", List.of("10.0.2.1")),
          entry("fs.beegfs.posix_gds_min_kb", 8));

  /// Returns the values of a JSON text by key, as a JSON parser reads them; the elements of an
  /// array are joined by spaces.
  private static Map<String, String> read(String json) throws IOException {
    Map<String, String> values = new TreeMap<>();
    try (JsonParser parser = new JsonFactory().createParser(json)) {
      for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
        if (token.isScalarValue()) {
          String key =
              parser.getParsingContext().inArray()
                  ? path(parser.getParsingContext().getParent().pathAsPointer().toString())
                  : path(parser.getParsingContext().pathAsPointer().toString());
          values.merge(key, parser.getText(), (before, next) -> before + " " + next);
        }
      }
    }
    return values;
  }

  private static String path(String pointer) {
    return pointer.substring(1);
  }

  @Test
  void theFileHasWhatWasSet() throws IOException {
    Map<String, String> values = read(CuFileConfig.of(ALL).json());
    assertThat(values)
        .containsEntry("logging/dir", "/var/log/gds")
        .containsEntry("logging/level", "DEBUG")
        .containsEntry("execution/max_io_threads", "8")
        .containsEntry("execution/parallel_io", "true")
        .containsEntry("properties/io_batchsize", "256")
        .containsEntry("properties/allow_compat_mode", "false")
        .containsEntry("properties/io_priority", "med")
        .containsEntry("properties/rdma_load_balancing_policy", "RoundRobinMaxMin")
        .containsEntry("properties/rdma_dynamic_routing_order", "P2P SYS_MEM")
        .containsEntry("properties/rdma_dc_key", "0xffeeddcc")
        .containsEntry("properties/posix_pool_slab_size_kb", "4 1024")
        .containsEntry("properties/posix_pool_slab_count", "128 64")
        .containsEntry("fs/generic/posix_unaligned_writes", "true")
        .containsEntry("fs/lustre/rdma_dev_addr_list", "10.0.1.1")
        .containsEntry("fs/lustre/mount_table/~1lustre~1\"a.b\"/rdma_dev_addr_list", "10.0.2.1")
        .containsEntry("fs/beegfs/posix_gds_min_kb", "8")
        .containsEntry("denylist/filesystems", "nfs lustre")
        .containsEntry("properties/gpu_bounce_buffer_slab_config/slab_size_kb", "1024 16384")
        .containsEntry("properties/gpu_bounce_buffer_slab_config/slab_count", "128 4")
        .containsEntry("block/raid10/use_pci_p2pdma", "true")
        .hasSize(61);
  }

  @Test
  void whatIsNotSetIsNotInTheFile() {
    assertThat(CuFileConfig.of(Map.of()).json()).isEqualToIgnoringWhitespace("{}");
    assertThat(CuFileConfig.of(Map.of("properties.io_batchsize", 1)).json())
        .isEqualToIgnoringWhitespace("{\"properties\":{\"io_batchsize\":1}}");
  }

  @Test
  void aConfigDoesNotChangeWithItsMap() {
    Map<String, Object> settings = new HashMap<>(Map.of("properties.io_batchsize", 1));
    CuFileConfig before = CuFileConfig.of(settings);
    assertThat(CuFileConfig.of(settings)).isEqualTo(before).hasSameHashCodeAs(before);
    settings.put("properties.io_batchsize", 2);
    assertThat(CuFileConfig.of(settings)).isNotEqualTo(before);
    assertThat(before.json()).contains(": 1");
  }

  @Test
  void aFileIsTakenAsItIs(@TempDir Path folder) throws IOException {
    String text = "{\n  // libcufile takes comments.\n  \"unknown\": 1\n}\n";
    Path file = Files.writeString(folder.resolve("mine.json"), text);
    assertThat(CuFileConfig.ofFile(file)).hasToString(text);
    assertThatThrownBy(() -> CuFileConfig.ofFile(folder.resolve("none")))
        .isInstanceOf(IOException.class);
  }

  static Stream<Arguments> misuses() {
    return Stream.of(
        misuse("profile.cufile_stats", 4, "must be 0 to 3 (was 4)"),
        misuse("profile.cufile_stats", "all", "must be a whole number (was all)"),
        misuse("profile.nvtx", 1, "must be true or false (was 1)"),
        misuse("logging.max_file_size_mb", 0, "must be -1 or 1 to 4096 (was 0)"),
        misuse("logging.dir", " ", "must be text (was  )"),
        misuse("execution.max_io_threads", 33, "must be 0 to 32 (was 33)"),
        misuse("properties.io_batchsize", 0, "must be 1 to 256 (was 0)"),
        misuse("properties.max_direct_io_size_kb", 100, "must be a multiple of 64 (was 100)"),
        misuse("properties.poll_mode_max_size_kb", 2L, "must be at least 4 (was 2)"),
        misuse(
            "properties.io_priority",
            "medium",
            "must be one of default, low, med, high (was medium)"),
        misuse(
            "properties.rdma_dc_key",
            "0x100000000",
            "must be 0x and up to 8 hexadecimal digits (was 0x100000000)"),
        misuse(
            "properties.rdma_dynamic_routing_order",
            List.of("P2P", "P2P"),
            "must name each once (was [P2P, P2P])"),
        misuse(
            "properties.rdma_dynamic_routing_order",
            List.of("PCI"),
            "must be one of GPU_MEM_NVLINKS, GPU_MEM, SYS_MEM, P2P (was [PCI])"),
        misuse("denylist.mounts", List.of(" "), "must be text (was [ ])"),
        misuse("denylist.mounts", "/mnt", "must be a list (was /mnt)"),
        misuse(
            "properties.posix_pool_slab_size_kb",
            List.of(4),
            "must have as many values as posix_pool_slab_count, and 1 or more (was [4] and null)"),
        misuse(
            "properties.gpu_bounce_buffer_slab_config.slab_size_kb",
            List.of(4),
            "must have as many values as slab_count, and 1 or more (was [4] and null)"),
        misuse(
            "properties.posix_pool_slab_size_kb", List.of(6), "must be a multiple of 4 (was [6])"));
  }

  private static Arguments misuse(String key, Object value, String message) {
    return Arguments.of(key, value, key + " " + message);
  }

  @Test
  void aSettingWithoutAValueIsRefused() {
    Map<String, Object> settings = new HashMap<>();
    settings.put("properties.io_priority", null);
    assertThatThrownBy(() -> CuFileConfig.of(settings))
        .isInstanceOf(MisuseException.class)
        .hasMessage("properties.io_priority must be given (was null)");
    settings.put("properties.io_priority", Arrays.asList("low", null));
    assertThatThrownBy(() -> CuFileConfig.of(settings))
        .hasMessage("properties.io_priority must be given (was [low, null])");
  }

  @ParameterizedTest
  @MethodSource("misuses")
  void whatLibcufileWouldRefuseIsRefused(String key, Object value, String message) {
    assertThatThrownBy(() -> CuFileConfig.of(Map.of(key, value)))
        .isInstanceOf(MisuseException.class)
        .hasMessage(message);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "io_batchsize",
        "properties.batchsize",
        "fs.nfs.posix_gds_min_kb",
        "logging.dir.a"
      })
  void aKeyThatLibcufileDoesNotHaveIsRefused(String key) {
    assertThatThrownBy(() -> CuFileConfig.of(Map.of(key, 4)))
        .isInstanceOf(MisuseException.class)
        .hasMessage("a setting must be a key of cufile.json (was " + key + ")");
  }

  @Test
  void theDocsNameEverySetting() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "cufile-json.md"));
    TreeSet<String> named = new TreeSet<>();
    Pattern.compile("^[|] `([a-z]+[.][^`]+)`", Pattern.MULTILINE)
        .matcher(page)
        .results()
        .map((MatchResult row) -> row.group(1))
        .forEach(named::add);
    assertThat(named)
        .containsExactlyInAnyOrderElementsOf(
            ALL.keySet().stream()
                .map(key ->
                    key.replaceFirst("fs[.](lustre|beegfs)", "fs.FILE_SYSTEM")
                        .replaceFirst("block[.]\\w+", "block.KIND")
                        .replace("/lustre/\"a.b\"", "FOLDER"))
                .distinct()
                .toList());
  }
}
