// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Metrics;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import jdk.jfr.consumer.RecordedEvent;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The events of loads to a device and of saves from a device, in a flight recording.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class DeviceEventsStubTest {
  private static final int LENGTH = 1 << 20;
  private static final int REQUEST = 64 << 10;
  private static final int INTERNAL_ERROR = 5030;
  private static final int PINNING_FAILED = 5036;
  private static final Device.Cuda DEVICE = new Device.Cuda(0);

  @TempDir Path folder;
  private final StubControls cuFile = StubControls.cuFile();
  private Path file;

  /// The session's metrics after the recorded load.
  private Metrics metrics;

  @BeforeEach
  void begin() {
    file = TestFiles.write(folder.resolve("weights"), 1, LENGTH);
    cuFile.clear();
    cuFile.direct(true);
  }

  @AfterEach
  void end() {
    cuFile.clear();
    cuFile.direct(false);
  }

  private static TransferOptions staged() {
    return TransferOptions.defaults()
        .withTransport(Transport.STAGED)
        .withThreads(2)
        .withLimits(new PlanLimits(REQUEST, 16 << 10, LENGTH));
  }

  private static TransferOptions direct() {
    return staged().withTransport(null).withCachePolicy(CachePolicy.DIRECT);
  }

  private Loaded load(GantrySession gantry, TransferOptions options) {
    return gantry.load(List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 8)), DEVICE, options);
  }

  private Recorded load(TransferOptions options) {
    return Recorded.during(
        folder,
        () -> {
          try (GantrySession gantry = GantrySession.open()) {
            load(gantry, options).close();
            metrics = gantry.metrics();
          }
        });
  }

  private static long sum(List<RecordedEvent> events, String field) {
    return events.stream().mapToLong(event -> event.getLong(field)).sum();
  }

  @Test
  void theCopiesOfAStagedLoad() {
    Recorded recorded = load(staged());
    List<RecordedEvent> copies = recorded.of("Copy");
    assertThat(sum(copies, "bytes")).isEqualTo(LENGTH);
    assertThat(sum(copies, "copies")).isEqualTo(LENGTH / REQUEST);
    assertThat(copies)
        .allSatisfy(copy -> {
          assertThat(copy.getString("device")).isEqualTo(DEVICE.toString());
          assertThat(copy.getString("direction")).isEqualTo("to device");
        });
    assertThat(recorded.of("Read"))
        .hasSize(LENGTH / REQUEST)
        .allSatisfy(read -> assertThat(read.getString("transport")).isEqualTo("staged"));
    assertThat(recorded.of("Wait"))
        .isNotEmpty()
        .allSatisfy(wait -> assertThat(wait.getString("waitedFor")).isEqualTo("copy"));
    assertThat(recorded.of("Load"))
        .singleElement()
        .satisfies(load -> assertThat(load.getString("device")).isEqualTo(DEVICE.toString()));
  }

  @Test
  void theCopiesOfASave() {
    Recorded recorded =
        Recorded.during(
            folder,
            () -> {
              try (GantrySession gantry = GantrySession.open();
                  Loaded loaded = load(gantry, staged().withTransport(Transport.STAGED))) {
                Memory memory =
                    new Memory.OnDevice(DEVICE, loaded.regions().getFirst().address(), LENGTH);
                gantry.write(
                    List.of(new NewFile(folder.resolve("saved"), List.of(memory))),
                    WriteOptions.defaults()
                        .withTransport(Transport.STAGED)
                        .withRequestBytes(REQUEST));
              }
            });
    List<RecordedEvent> copies =
        recorded.of("Copy").stream()
            .filter(copy -> copy.getString("direction").equals("to host"))
            .toList();
    assertThat(sum(copies, "bytes")).isEqualTo(LENGTH);
    assertThat(recorded.of("Save")).hasSize(1);
  }

  @Test
  void registrationsOfFilesAndMemory() {
    List<RecordedEvent> registrations = load(direct()).of("Registration");
    assertThat(registrations)
        .extracting(registration -> registration.getString("what"))
        .containsExactlyInAnyOrder(file.toString(), "memory");
    assertThat(registrations)
        .allSatisfy(registration -> {
          assertThat(registration.getString("device")).isEqualTo(DEVICE.toString());
          assertThat(registration.getString("refusal")).isEmpty();
        });
    assertThat(sum(registrations, "bytes")).isEqualTo(LENGTH);
  }

  @Test
  void registrationsThatAreRefused() {
    cuFile.fail("cuFileBufRegister", 1, PINNING_FAILED, 0);
    assertThat(load(direct()).of("Registration"))
        .filteredOn(registration -> registration.getString("what").equals("memory"))
        .singleElement()
        .satisfies(registration ->
            assertThat(registration.getString("refusal"))
                .contains("CU_FILE_GPU_MEMORY_PINNING_FAILED"));
    cuFile.serves(false);
    assertThat(load(direct()).of("Registration"))
        .singleElement()
        .satisfies(registration ->
            assertThat(registration.getString("refusal")).contains("CU_FILE_IO_NOT_SUPPORTED"));
    cuFile.serves(true);
  }

  @Test
  void aFallback() {
    cuFile.fail("cuFileRead", 2, INTERNAL_ERROR, 0);
    Recorded recorded = load(direct().withThreads(1));
    assertThat(recorded.of("Fallback"))
        .singleElement()
        .satisfies(fallback -> {
          assertThat(fallback.getString("file")).isEqualTo(Location.of(file).toString());
          assertThat(fallback.getString("transport")).isEqualTo("staged");
          assertThat(fallback.getString("reason")).contains("CU_FILE_INTERNAL_ERROR");
        });
    assertThat(recorded.of("Read"))
        .extracting(read -> read.getString("transport"))
        .hasSize(LENGTH / REQUEST)
        .startsWith("gds")
        .endsWith("staged");
    assertThat(metrics.reads().fallbacks()).isEqualTo(1);
    assertThat(metrics.reads().bytes(Transport.GDS)).isEqualTo(REQUEST);
    assertThat(metrics.reads().bytes(Transport.STAGED)).isEqualTo(LENGTH - REQUEST);
  }

  @Test
  void aWaitForBuffers() {
    StagingPool pool = new StagingPool(CudaContext.of(DEVICE), 1, Long.MAX_VALUE);
    StagingPool.Share first = pool.share();
    StagingPool.Share second = pool.share();
    Recorded recorded =
        Recorded.during(
            folder,
            () -> {
              StagingPool.Pair pair = requireNonNull(first.take(REQUEST, () -> true));
              CompletableFuture<Void> waiting =
                  CompletableFuture.runAsync(
                      () -> second.giveBack(requireNonNull(second.take(REQUEST, () -> true))));
              Latches.awaitThat(() -> pool.waiting() > 0);
              first.giveBack(pair);
              waiting.join();
            });
    assertThat(recorded.of("Wait"))
        .singleElement()
        .satisfies(wait -> assertThat(wait.getString("waitedFor")).isEqualTo("buffers"));
  }
}
