// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Checkpoints of tensors on a device, which are restored to the device or to the CPU, and the
/// reverse.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class DeviceCheckpointGpuTest {
  private static final int TENSORS = 30;

  @TempDir Path folder;
  private final GantrySession session = GantrySession.open();
  private final List<ExtentRequest> wanted = new ArrayList<>();

  @AfterEach
  void close() {
    session.close();
  }

  /// Returns the bytes of the tensors, whose sizes make them share blocks.
  private Loaded tensors(Device device) {
    Path file = TestFiles.write(folder.resolve("bytes"), 8, 3_000_000);
    for (int i = 0; i < TENSORS; i++) {
      wanted.add(new ExtentRequest(new Extent(file, i * 90_004L, 4L * (1 + i * 701)), 4));
    }
    return session.load(wanted, device, TransferOptions.defaults());
  }

  private UnsavedCheckpoint checkpoint(Loaded loaded) {
    List<NewTensor> tensors = new ArrayList<>();
    for (Region region : loaded.regions()) {
      TensorShape shape = TensorShape.of(region.length() / 4);
      tensors.add(new NewTensor("tensor." + tensors.size(), DType.F32, shape, region.source()));
    }
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put("model", tensors);
    return new UnsavedCheckpoint(1, groups, Map.of(), Map.of(), Map.of());
  }

  private void requireSame(CheckpointFolder stored, Device device) {
    Map<String, StoredTensor> infos = stored.open("model").tensors();
    List<ExtentRequest> saved = new ArrayList<>();
    for (int i = 0; i < TENSORS; i++) {
      saved.add(LoadedTensors.wanted(infos.get("tensor." + i)));
    }
    try (Loaded loaded = session.load(saved, device, TransferOptions.defaults())) {
      for (int i = 0; i < TENSORS; i++) {
        assertThat(TestFiles.bytes(loaded.regions().get(i)))
            .as("tensor %d", i)
            .isEqualTo(TestFiles.expected(wanted.get(i).extent()));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"cuda:0,cuda:0", "cuda:0,host", "host,cuda:0"})
  void fromOneDeviceToAnother(String from, String to) {
    try (Loaded loaded = tensors(Device.parse(from));
        CheckpointStore store =
            CheckpointStore.open(session, folder.resolve("run"), Retention.ALL, 400_000)) {
      SavedCheckpoint saved = store.save(checkpoint(loaded), WriteOptions.defaults());
      requireSame(saved.checkpoint(), Device.parse(to));
    }
  }

  /// The limits allow no snapshot, a snapshot in host memory, or one that is partly on the device.
  @ParameterizedTest
  @CsvSource({"0,0", "0,1000000000", "1000000000,1000000000"})
  void behindTheCallersBack(long deviceBytes, long hostBytes) {
    SnapshotLimits limits = new SnapshotLimits(deviceBytes, hostBytes);
    try (CheckpointStore store =
            CheckpointStore.open(session, folder.resolve("run"), Retention.ALL, 400_000);
        SaveQueue queue = new SaveQueue(store, limits, BusyPolicy.WAIT, WriteOptions.defaults())) {
      CompletableFuture<SaveOutcome> submitted;
      try (Loaded loaded = tensors(new Device.Cuda(0))) {
        submitted = queue.submit(checkpoint(loaded));
      }
      // The tensors' memory is freed, whether or not the write has ended.
      assertThat(submitted.join()).isInstanceOf(SaveOutcome.Saved.class);
      requireSame(
          CheckpointStore.list(GantrySession.shared(), folder.resolve("run"))
              .latest()
              .orElseThrow(),
          Device.HOST);
    }
  }

  /// Another thread takes the snapshot into prepared memory, and the tensors' memory is freed
  /// then.
  @ParameterizedTest
  @CsvSource({"0,0", "0,1000000000", "1000000000,1000000000"})
  void overlapped(long deviceBytes, long hostBytes) {
    SnapshotLimits limits = new SnapshotLimits(deviceBytes, hostBytes);
    Loaded loaded = tensors(new Device.Cuda(0));
    try (CheckpointStore store =
            CheckpointStore.open(session, folder.resolve("run"), Retention.ALL, 400_000);
        SaveQueue queue = new SaveQueue(store, limits, BusyPolicy.WAIT, WriteOptions.defaults())) {
      queue.prepare(checkpoint(loaded)).join();
      SaveQueue.Overlapped save =
          queue.submitOverlapped(checkpoint(loaded), () -> {}, loaded::close);
      assertThat(save.saved().join()).isInstanceOf(SaveOutcome.Saved.class);
      requireSame(
          CheckpointStore.list(GantrySession.shared(), folder.resolve("run"))
              .latest()
              .orElseThrow(),
          Device.HOST);
    }
  }
}
