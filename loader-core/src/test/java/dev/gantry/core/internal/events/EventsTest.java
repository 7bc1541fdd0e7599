// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import jdk.jfr.EventType;
import jdk.jfr.ValueDescriptor;
import jdk.jfr.consumer.RecordedEvent;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@ExtendWith(NoLeaks.class)
class EventsTest {
  private static final Set<String> EVERY_EVENT_HAS =
      Set.of("startTime", "duration", "eventThread", "stackTrace");
  private static final Pattern SECOND_CELL = Pattern.compile("^[|][^|]*[|]([^|]*)[|]");
  private static final int LENGTH = 1 << 20;
  private static final int REQUEST = 64 << 10;

  @TempDir Path folder;

  private ExtentRequest file(String name) {
    return new ExtentRequest(new Extent(folder.resolve(name), 0, LENGTH), 8);
  }

  private static TransferOptions options() {
    return TransferOptions.defaults()
        .withLimits(new PlanLimits(REQUEST, 16 << 10, LENGTH))
        .withCachePolicy(CachePolicy.BUFFERED);
  }

  private void load(String name) {
    try (GantrySession gantry = GantrySession.open()) {
      gantry.load(List.of(file(name)), Device.HOST, options()).close();
    }
  }

  @Test
  void aLoadAndItsReads() {
    Path file = TestFiles.write(folder.resolve("weights"), 1, LENGTH);
    Recorded recorded = Recorded.during(folder, () -> load("weights"));
    assertThat(recorded.of("Load"))
        .singleElement()
        .satisfies(load -> {
          assertThat(load.getString("device")).isEqualTo("host");
          assertThat(load.getLong("extents")).isEqualTo(1);
          assertThat(load.getLong("files")).isEqualTo(1);
          assertThat(load.getLong("bytes")).isEqualTo(LENGTH);
          assertThat(load.getLong("directBytes")).isZero();
          assertThat(load.getLong("reads")).isEqualTo(LENGTH / REQUEST);
          assertThat(load.getString("failure")).isEmpty();
          assertThat(load.getDuration()).isPositive();
        });
    List<RecordedEvent> reads = recorded.of("Read");
    assertThat(reads)
        .extracting(read -> read.getLong("offset") / REQUEST)
        .containsExactlyInAnyOrder(
            0L, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L, 11L, 12L, 13L, 14L, 15L);
    assertThat(reads)
        .allSatisfy(read -> {
          assertThat(read.getString("file")).isEqualTo(Location.of(file).toString());
          assertThat(read.getLong("length")).isEqualTo(REQUEST);
          assertThat(read.getString("transport")).isEqualTo("host");
          assertThat(read.getString("residency")).isEqualTo("hot");
          assertThat(read.getBoolean("direct")).isFalse();
          assertThat(read.getThread().getJavaName()).startsWith("gantry-");
          assertThat(read.getStackTrace()).isNull();
        });
  }

  @Test
  void aReadOfARemoteFile() {
    Location file = MemoryStore.put("weights", TestFiles.bytes(1, LENGTH));
    Recorded recorded =
        Recorded.during(
            folder,
            () -> {
              try (GantrySession gantry = GantrySession.open()) {
                gantry
                    .load(
                        List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 8)),
                        Device.HOST,
                        options())
                    .close();
              }
            });
    assertThat(recorded.of("Read"))
        .hasSize(LENGTH / REQUEST)
        .allSatisfy(read -> assertThat(read.getString("file")).isEqualTo(file.toString()));
  }

  @Test
  void aLoadThatFails() {
    Recorded recorded =
        Recorded.during(
            folder,
            () -> assertThatThrownBy(() -> load("missing")).isInstanceOf(TransferException.class));
    assertThat(recorded.of("Load"))
        .singleElement()
        .satisfies(load -> assertThat(load.getString("failure")).contains("missing", "ENOENT"));
  }

  @Test
  void shortReadsAreNotWrittenByDefault() {
    TestFiles.write(folder.resolve("weights"), 1, 4096);
    ExtentRequest small = new ExtentRequest(new Extent(folder.resolve("weights"), 0, 4096), 8);
    Recorded recorded =
        Recorded.byDefault(
            folder,
            () -> {
              try (GantrySession gantry = GantrySession.open()) {
                gantry.load(List.of(small), Device.HOST, options()).close();
              }
            });
    assertThat(recorded.of("Load")).hasSize(1);
    assertThat(recorded.of("Read")).isEmpty();
  }

  @Test
  void aSaveAndTheStepsOfItsCommit() {
    Path target = folder.resolve("checkpoint");
    Recorded recorded =
        Recorded.during(
            folder,
            () -> {
              try (Arena arena = Arena.ofShared();
                  GantrySession gantry = GantrySession.open()) {
                MemorySegment bytes = arena.allocate(LENGTH, 4096);
                gantry.write(
                    List.of(new NewFile(target, List.of(new Memory.OnHost(bytes)))),
                    WriteOptions.defaults().withRequestBytes(REQUEST));
              }
            });
    assertThat(recorded.of("Save"))
        .singleElement()
        .satisfies(save -> {
          assertThat(save.getString("file")).isEqualTo(target.toString());
          assertThat(save.getLong("files")).isEqualTo(1);
          assertThat(save.getLong("bytes")).isEqualTo(LENGTH);
          assertThat(save.getLong("directBytes")).isIn(0L, (long) LENGTH);
          assertThat(save.getLong("writes")).isEqualTo(LENGTH / REQUEST);
          assertThat(save.getString("failure")).isEmpty();
        });
    List<RecordedEvent> steps = recorded.of("Commit");
    assertThat(steps)
        .extracting(step -> step.getString("step"))
        .containsExactly("synchronise file", "rename", "synchronise folder");
    assertThat(steps)
        .extracting(step -> step.getString("file"))
        .containsExactly(target.toString(), target.toString(), folder.toString());
  }

  @Test
  void aSaveThatFails() {
    Path target = folder.resolve("no folder").resolve("checkpoint");
    Recorded recorded =
        Recorded.during(
            folder,
            () -> {
              try (Arena arena = Arena.ofShared();
                  GantrySession gantry = GantrySession.open()) {
                List<NewFile> files =
                    List.of(new NewFile(target, List.of(new Memory.OnHost(arena.allocate(8)))));
                assertThatThrownBy(() -> gantry.write(files, WriteOptions.defaults()))
                    .isInstanceOf(TransferException.class);
              }
            });
    assertThat(recorded.of("Save"))
        .singleElement()
        .satisfies(save -> assertThat(save.getString("failure")).contains("ENOENT"));
    assertThat(recorded.of("Commit")).isEmpty();
  }

  @Test
  void theStepsOfAFileThatWasAppendedTo() {
    Recorded recorded =
        Recorded.during(
            folder,
            () -> {
              try (GantrySession gantry = GantrySession.open();
                  AppendedFile file = gantry.append(folder.resolve("records"))) {
                AppendedFile.commit(List.of(file));
              }
            });
    assertThat(recorded.of("Commit"))
        .extracting(step -> step.getString("step"))
        .containsExactly("synchronise file", "rename", "synchronise folder");
  }

  /// A runtime that `jlink` makes may lack the module `jdk.jfr`.
  @Test
  void filesAreWrittenAndLoadedWithoutARecorder() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--limit-modules=java.base,java.net.http",
                "-cp",
                System.getProperty("java.class.path"),
                "dev.gantry.core.internal.natives.JdkFilesProgram",
                folder.toString())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
  }

  static List<EventKind> events() {
    return List.of(
        EventKind.LOAD,
        EventKind.READ,
        EventKind.COPY,
        EventKind.WAIT,
        EventKind.FALLBACK,
        EventKind.REGISTRATION,
        EventKind.RING_BATCH,
        EventKind.SAVE,
        EventKind.COMMIT);
  }

  /// The second table names an event only in the event's first row.
  @ParameterizedTest
  @MethodSource("events")
  void theDocsNameEveryField(EventKind event) throws IOException {
    EventType type = event.type();
    String page = Files.readString(Path.of("..", "docs", "observability.md"));
    Matcher rows =
        Pattern.compile(
                "^[|] `" + Pattern.quote(type.getName()) + "` [|] `.*\\n(?:[|] [|].*\\n)*",
                Pattern.MULTILINE)
            .matcher(page);
    assertThat(rows.find()).isTrue();
    List<String> named =
        rows.group()
            .lines()
            .flatMap(row -> SECOND_CELL.matcher(row).results())
            .flatMap(cell -> Pattern.compile("\\w+").matcher(cell.group(1)).results())
            .map(MatchResult::group)
            .toList();
    List<String> ownFields =
        type.getFields().stream()
            .map(ValueDescriptor::getName)
            .filter(field -> !EVERY_EVENT_HAS.contains(field))
            .toList();
    assertThat(named).containsExactlyInAnyOrderElementsOf(ownFields);
  }
}
