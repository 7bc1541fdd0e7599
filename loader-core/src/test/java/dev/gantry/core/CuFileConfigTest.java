// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.gantry.core.CuFileConfig.FileSystem;
import dev.gantry.core.CuFileConfig.LogLevel;
import dev.gantry.core.CuFileConfig.Priority;
import dev.gantry.core.CuFileConfig.RdmaPolicy;
import dev.gantry.core.CuFileConfig.Routing;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class CuFileConfigTest {
  /// Every option.
  private static CuFileConfig all() {
    return CuFileConfig.builder()
        .optLogFolder(Path.of("/var/log/gds"))
        .optLogLevel(LogLevel.DEBUG)
        .optNvtx(true)
        .optStatistics(3)
        .optMaxIoQueueDepth(64)
        .optMaxIoThreads(8)
        .optParallelIo(true)
        .optMinIoThresholdKib(4096)
        .optMaxRequestParallelism(2)
        .optMaxDirectIoKib(8192)
        .optMaxDeviceCacheKib(262_144)
        .optPerBufferCacheKib(2048)
        .optMaxDevicePinnedKib(33_554_432)
        .optPollMode(true)
        .optPollModeMaxKib(16)
        .optAllowCompatMode(false)
        .optForceCompatMode(false)
        .optForceDirect(true)
        .optAllowSystemMemory(false)
        .optPreferIoUring(true)
        .optPciPeerToPeer(true)
        .optRdmaWrites(false)
        .optBatchSize(256)
        .optBatchTimeoutMillis(50)
        .optIoPriority(Priority.MEDIUM)
        .optRdmaAddresses(List.of("10.0.0.1", "10.0.0.2"))
        .optRdmaPolicy(RdmaPolicy.ROUND_ROBIN_MAX_MIN)
        .optRdmaDynamicRouting(true)
        .optRdmaRouting(List.of(Routing.P2P, Routing.SYS_MEM))
        .optRdmaKey(0xffee_ddccL)
        .optUnalignedWritesByPosix(true)
        .optGpfsWrites(true)
        .optGpfsAsync(false)
        .optWekaRdmaWrites(true)
        .optDenyDrivers(List.of("nvme"))
        .optDenyDevices(List.of("/dev/sdb"))
        .optDenyMounts(List.of("/mnt/slow"))
        .optDenyFileSystems(List.of("nfs", "lustre"))
        .optCheckAggressively(true)
        .optSkipTopologyDetection(true)
        .optStreamMemOpsBypass(true)
        .optPosixBuffers(List.of(4L, 1024L), List.of(128L, 64L))
        .optRdmaAddresses(FileSystem.LUSTRE, List.of("10.0.1.1"))
        .optRdmaAddresses(FileSystem.LUSTRE, Path.of("/lustre/\"a\""), List.of("10.0.2.1"))
        .optPosixBelowKib(FileSystem.BEEGFS, 8)
        .build();
  }

  /// What a reader of JSON finds: values by their keys, elements joined by spaces.
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
    Map<String, String> values = read(all().json());
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
        .containsEntry("fs/lustre/mount_table/~1lustre~1\"a\"/rdma_dev_addr_list", "10.0.2.1")
        .containsEntry("fs/beegfs/posix_gds_min_kb", "8")
        .containsEntry("denylist/filesystems", "nfs lustre")
        .hasSize(46);
  }

  @Test
  void whatIsNotSetIsNotInTheFile() {
    assertThat(CuFileConfig.builder().build().json()).isEqualToIgnoringWhitespace("{}");
    assertThat(CuFileConfig.builder().optBatchSize(1).build().json())
        .isEqualToIgnoringWhitespace("{\"properties\":{\"io_batchsize\":1}}");
  }

  @Test
  void aConfigDoesNotChangeWithItsBuilder() {
    CuFileConfig.Builder builder = CuFileConfig.builder().optBatchSize(1);
    CuFileConfig before = builder.build();
    assertThat(builder.build()).isEqualTo(before).hasSameHashCodeAs(before);
    assertThat(builder.optBatchSize(2).build()).isNotEqualTo(before);
    assertThat(before.json()).contains(": 1");
  }

  static Stream<Arguments> misuses() {
    return Stream.of(
        misuse(builder -> builder.optStatistics(4), "optStatistics must be 0 to 3 (was 4)"),
        misuse(builder -> builder.optMaxIoThreads(33), "optMaxIoThreads must be 0 to 32 (was 33)"),
        misuse(builder -> builder.optBatchSize(0), "optBatchSize must be 1 to 256 (was 0)"),
        misuse(
            builder -> builder.optMaxDirectIoKib(100),
            "optMaxDirectIoKib must be a multiple of 64 (was 100)"),
        misuse(
            builder -> builder.optPollModeMaxKib(2),
            "optPollModeMaxKib must be at least 4 (was 2)"),
        misuse(
            builder -> builder.optRdmaKey(1L << 32),
            "optRdmaKey must be 0 to 4294967295 (was 4294967296)"),
        misuse(
            builder -> builder.optRdmaRouting(List.of(Routing.P2P, Routing.P2P)),
            "optRdmaRouting must name each once (was [P2P, P2P])"),
        misuse(
            builder -> builder.optDenyMounts(List.of(" ")),
            "optDenyMounts must name each once (was [ ])"),
        misuse(
            builder -> builder.optPosixBuffers(List.of(4L), List.of()),
            "optPosixBuffers must have as many sizes as counts, and 1 or more (was 1 sizes, 0"
                + " counts)"),
        misuse(
            builder -> builder.optPosixBuffers(List.of(6L), List.of(1L)),
            "optPosixBuffers must be a multiple of 4 (was 6)"),
        misuse(
            builder -> builder.optPosixBelowKib(FileSystem.NFS, 4),
            "optPosixBelowKib must be of beegfs, lustre or scatefs (was nfs)"));
  }

  private static Arguments misuse(UnaryOperator<CuFileConfig.Builder> option, String message) {
    return Arguments.of(option, message);
  }

  @ParameterizedTest
  @MethodSource("misuses")
  void whatLibcufileWouldRefuseIsRefused(
      UnaryOperator<CuFileConfig.Builder> option, String message) {
    assertThatThrownBy(() -> option.apply(CuFileConfig.builder()))
        .isInstanceOf(MisuseException.class)
        .hasMessage(message);
  }

  @Test
  void theDocsNameEveryOptionAndThisTestSetsEach() throws IOException {
    String page = Files.readString(Path.of("..", "docs", "cufile-json.md"));
    String test =
        Files.readString(
            Path.of("src", "test", "java", "dev", "gantry", "core", "CuFileConfigTest.java"));
    List<String> options =
        Arrays.stream(CuFileConfig.Builder.class.getMethods())
            .map(Method::getName)
            .filter(name -> name.startsWith("opt"))
            .distinct()
            .toList();
    TreeSet<String> named = new TreeSet<>();
    Pattern.compile("^[|] `(opt\\w+)`", Pattern.MULTILINE)
        .matcher(page)
        .results()
        .map((MatchResult row) -> row.group(1))
        .forEach(named::add);
    assertThat(named).containsExactlyInAnyOrderElementsOf(options);
    assertThat(options).allSatisfy(option -> assertThat(test).contains("." + option + "("));
  }
}
