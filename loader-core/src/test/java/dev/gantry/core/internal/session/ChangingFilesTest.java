// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.ChangingFile;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Files that change between any two calls of a reader.
@ExtendWith(NoLeaks.class)
class ChangingFilesTest {
  private static final int BLOCK = 4096;
  private static final int BLOCKS = 6;
  private static final byte[] BEFORE = TestFiles.bytes(1, BLOCKS * BLOCK);
  private static final byte[] AFTER = TestFiles.bytes(2, BLOCKS * BLOCK);

  @TempDir Path folder;

  private static TransferOptions options(CachePolicy policy) {
    return TransferOptions.defaults()
        .withThreads(1)
        .withCachePolicy(policy)
        .withLimits(PlanLimits.DEFAULT.withRequestBytes(BLOCK));
  }

  private static List<ExtentRequest> all(Path file) {
    return List.of(new ExtentRequest(new Extent(file, 0, BLOCKS * (long) BLOCK), 8));
  }

  @ParameterizedTest
  @EnumSource
  void loadsBringOneVersion(CachePolicy policy) throws IOException {
    ChangingFile.everywhere(
        folder.resolve("loaded"),
        BEFORE,
        AFTER,
        (session, file) -> {
          try (Loaded loaded = session.load(all(file), Device.HOST, options(policy))) {
            return TestFiles.bytes(loaded.regions().getFirst());
          }
        });
  }

  /// Reads one batch for each block. The batches that the program got before the change must not
  /// change.
  private static byte[] batches(GantrySession session, Path file) {
    BatchPlanSource<Integer> source =
        new BatchPlanSource<>() {
          private int next;

          @Override
          public Optional<BatchPlan<Integer>> next() {
            int number = next++;
            return number == BLOCKS
                ? Optional.empty()
                : Optional.of(
                    new BatchPlan<>(
                        List.of(
                            new Read(Location.of(file), (long) number * BLOCK, BLOCK, BLOCK, 0, 0)),
                        HostWrites.NONE,
                        List.of(),
                        number));
          }
        };
    RingOptions options =
        new RingOptions(Device.HOST, 2, BLOCK, 0, options(CachePolicy.BUFFERED), false);
    ByteArrayOutputStream got = new ByteArrayOutputStream();
    try (PrefetchRing<Integer> ring = session.ring(options, source)) {
      for (Optional<RingBatch<Integer>> next = ring.next(); next.isPresent(); next = ring.next()) {
        try (RingBatch<Integer> batch = next.get()) {
          got.writeBytes(TestFiles.bytes(batch.region(0, BLOCK)));
        }
      }
    }
    return got.toByteArray();
  }

  @Test
  void theBatchesOfARingAreOfOneVersion() throws IOException {
    ChangingFile.everywhere(folder.resolve("batches"), BEFORE, AFTER, ChangingFilesTest::batches);
  }

  @Test
  void aFileThatChangesInPlaceIsNamed() throws IOException {
    Path file = Files.write(folder.resolve("named"), BEFORE);
    Files.setLastModifiedTime(file, FileTime.fromMillis(0));
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    calls.at(
        FaultyFileCalls.Function.PREAD,
        3,
        new FaultyFileCalls.After(() -> {
          try {
            Files.write(file, AFTER);
          } catch (IOException e) {
            throw new AssertionError(e);
          }
        }));
    try (GantrySession session = Sessions.over(calls)) {
      assertThatThrownBy(() -> session.load(all(file), Device.HOST, options(CachePolicy.BUFFERED)))
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("named")
          .hasMessageContaining("changed-meanwhile");
    }
  }

  /// A mapping shows the current file. A file that became shorter before it was mapped is refused;
  /// docs/limits.md describes the effect of later changes.
  @Test
  void aFileThatHasChangedBeforeItWasMappedIsRefused() throws IOException {
    Path file = Files.write(folder.resolve("mapped"), BEFORE);
    Files.setLastModifiedTime(file, FileTime.fromMillis(0));
    for (boolean shorter : List.of(false, true)) {
      FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
      calls.at(
          FaultyFileCalls.Function.STAT,
          2,
          new FaultyFileCalls.After(() -> {
            try {
              Files.write(file, shorter ? new byte[BLOCK] : AFTER);
            } catch (IOException e) {
              throw new AssertionError(e);
            }
          }));
      try (GantrySession session = Sessions.over(calls)) {
        assertThatThrownBy(() -> session.map(all(file)))
            .isInstanceOf(MalformedFileException.class)
            .hasMessageContaining("changed-meanwhile");
      }
      Files.write(file, BEFORE);
      Files.setLastModifiedTime(file, FileTime.fromMillis(0));
    }
  }
}
