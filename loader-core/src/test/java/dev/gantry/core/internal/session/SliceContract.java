// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.StridedRange;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Slices of tensors along any axis, in the memory of one device or several.
@ExtendWith(NoLeaks.class)
abstract class SliceContract {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;

  @TempDir Path folder;
  private final GantrySession gantry = GantrySession.open();

  /// Returns lists of devices; a list has a device for each rank.
  abstract List<List<Device>> devices();

  @AfterEach
  void close() {
    gantry.close();
  }

  /// A tensor of three axes, which is sliced along the middle axis.
  private record Tensor(long offset, int outer, int rows, int inner) {
    int bytes() {
      return outer * rows * inner;
    }

    Sliced slice(Location file, int rank, int world) {
      int part = rows / world * inner;
      Copy2D slice =
          new Copy2D(offset + (long) rank * part, (long) rows * inner, 0, part, part, outer);
      return new Sliced(List.of(new StridedRange(file, slice)), (long) part * outer);
    }

    byte[] expected(byte[] file, int rank, int world) {
      int part = rows / world * inner;
      byte[] bytes = new byte[part * outer];
      for (int row = 0; row < outer; row++) {
        System.arraycopy(
            file, (int) offset + row * rows * inner + rank * part, bytes, row * part, part);
      }
      return bytes;
    }
  }

  private static List<Tensor> tensors(Random random, int world) {
    List<Tensor> tensors = new ArrayList<>();
    long offset = random.nextInt(3 * BLOCK);
    for (int i = 0; i < 8; i++) {
      int outer = random.nextBoolean() ? 1 : 1 + random.nextInt(60);
      int rows = world * (1 + random.nextInt(6));
      int inner = 1 + random.nextInt(random.nextBoolean() ? 900 : 9);
      Tensor tensor = new Tensor(offset, outer, rows, inner);
      tensors.add(tensor);
      offset += tensor.bytes() + (random.nextInt(3) == 0 ? random.nextInt(5 * BLOCK) : 0);
    }
    return tensors;
  }

  private static TransferOptions options(Random random) {
    return TransferOptions.defaults()
        .withThreads(1 + random.nextInt(3))
        .withCachePolicy(List.of(CachePolicy.values()).get(random.nextInt(3)))
        .withLimits(
            new PlanLimits(
                (1L + random.nextInt(4)) * BLOCK,
                random.nextInt(3) * 1000L,
                (4L + random.nextInt(40)) * BLOCK));
  }

  @Test
  void theRanksPartsAreTheTensorAndEachByteIsReadOnce() {
    for (int seed = 0; seed < 30; seed++) {
      Random random = new Random(seed);
      for (List<Device> devices : devices()) {
        int world = devices.size();
        List<Tensor> tensors = tensors(random, world);
        int length = (int) tensors.getLast().offset() + tensors.getLast().bytes();
        byte[] contents = TestFiles.bytes(seed, length);
        String name = "file" + seed + "-" + world;
        Location file =
            seed % 3 == 0
                ? MemoryStore.put("slices/" + name, contents)
                : Location.of(TestFiles.write(folder.resolve(name), seed, length));
        List<List<Sliced>> parts = new ArrayList<>();
        for (int rank = 0; rank < world; rank++) {
          int of = rank;
          parts.add(tensors.stream().map(tensor -> tensor.slice(file, of, world)).toList());
        }
        List<Loaded> loaded = gantry.loadSlices(devices, parts, options(random));
        for (int rank = 0; rank < world; rank++) {
          for (int i = 0; i < tensors.size(); i++) {
            assertThat(TestFiles.bytes(loaded.get(rank).regions().get(i)))
                .as("seed %s, rank %s of %s, %s", seed, rank, devices, tensors.get(i))
                .isEqualTo(tensors.get(i).expected(contents, rank, world));
          }
        }
        TransferReport report = loaded.getFirst().report();
        // Some rank wants each byte, so no byte is read twice, except in the blocks at the ends of
        // runs.
        assertThat(report.bytes())
            .as("seed %s", seed)
            .isLessThanOrEqualTo(length + 2L * BLOCK * (tensors.size() + 1));
        if (world > 1) {
          assertThat(report.devices())
              .allSatisfy(device ->
                  assertThat(device.fromHostBytes())
                      .isEqualTo(tensors.stream().mapToLong(Tensor::bytes).sum() / world));
        }
        loaded.forEach(Loaded::close);
      }
    }
  }

  @Test
  void oneRankReadsNoRowsOfOthersThatAreLong() {
    Device device = devices().getFirst().getFirst();
    Tensor tensor = new Tensor(BLOCK, 6, 4, 25 * BLOCK);
    Path path = TestFiles.write(folder.resolve("file"), 1, BLOCK + tensor.bytes());
    byte[] contents = TestFiles.bytes(1, BLOCK + tensor.bytes());
    List<List<Sliced>> parts = List.of(List.of(tensor.slice(Location.of(path), 2, 4)));
    List<Loaded> loaded = gantry.loadSlices(List.of(device), parts, TransferOptions.defaults());
    assertThat(TestFiles.bytes(loaded.getFirst().regions().getFirst()))
        .isEqualTo(tensor.expected(contents, 2, 4));
    assertThat(loaded.getFirst().report().bytes()).isEqualTo(tensor.bytes() / 4);
    loaded.forEach(Loaded::close);
  }

  @Test
  void partsWithoutBytesAreNowhereAndSeveralRangesFillOnePart() {
    Device device = devices().getFirst().getFirst();
    Path path = TestFiles.write(folder.resolve("file"), 1, 10_000);
    byte[] contents = TestFiles.bytes(1, 10_000);
    Location file = Location.of(path);
    Sliced fused =
        new Sliced(
            List.of(
                new StridedRange(file, new Copy2D(5000, 300, 0, 150, 100, 10)),
                new StridedRange(file, new Copy2D(100, 60, 100, 150, 50, 10))),
            1500);
    Sliced empty = new Sliced(List.of(), 0);
    List<List<Sliced>> parts = List.of(List.of(empty, fused, empty));
    List<Loaded> loaded = gantry.loadSlices(List.of(device), parts, TransferOptions.defaults());
    byte[] expected = new byte[1500];
    for (int row = 0; row < 10; row++) {
      System.arraycopy(contents, 5000 + row * 300, expected, row * 150, 100);
      System.arraycopy(contents, 100 + row * 60, expected, row * 150 + 100, 50);
    }
    assertThat(TestFiles.bytes(loaded.getFirst().regions().get(1))).isEqualTo(expected);
    assertThat(loaded.getFirst().regions().getFirst().length()).isZero();
    loaded.forEach(Loaded::close);
  }

  @Test
  void aTransportThatDoesNotServeIsRefused() {
    for (List<Device> devices : devices()) {
      if (devices.getFirst() instanceof Device.Cuda && devices.contains(Device.HOST)) {
        List<List<Sliced>> parts = devices.stream().map(_ -> List.<Sliced>of()).toList();
        TransferOptions options = TransferOptions.defaults().withTransport(Transport.COMPAT);
        assertThatThrownBy(() -> gantry.loadSlices(devices, parts, options))
            .isInstanceOf(DeviceUnavailableException.class)
            .hasMessageContaining("some of the bytes go to host memory");
      }
    }
  }
}
