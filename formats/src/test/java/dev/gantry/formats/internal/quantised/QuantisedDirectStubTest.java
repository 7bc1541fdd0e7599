// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.convert.Dequantisation;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.internal.weights.Dequantised;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.TensorSlice;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Codes and scales are read past the CPU onto the GPU that computes the values, on one GPU and on
/// two. libcufile's own counts show that each byte is read once.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class QuantisedDirectStubTest {
  private static final Device.Cuda FIRST = new Device.Cuda(0);
  private static final Device.Cuda SECOND = new Device.Cuda(1);

  private final StubControls cuFile = StubControls.cuFile();
  private final StubControls cuda = StubControls.cuda();
  private final GantrySession session = GantrySession.open();
  private long readBefore;
  private long copiedBefore;

  @BeforeEach
  void directIoIsThere() {
    cuFile.clear();
    cuFile.direct(true);
    cuda.clear();
    cuda.peers(true);
    readBefore = cuFile.count("bytes read");
    copiedBefore = cuda.count("to device bytes");
  }

  @AfterEach
  void nothingIsLeft() {
    session.close();
    cuFile.direct(false);
    assertThat(cuFile.count("buffers")).isZero();
    assertThat(cuFile.count("handles")).isZero();
    assertThat(LiveResources.snapshot().registrations()).isZero();
  }

  static Stream<Path> folders() throws IOException {
    return QuantisedCorpusTest.good().stream();
  }

  private static TransferOptions direct() {
    return TransferOptions.defaults().withCachePolicy(CachePolicy.DIRECT).withThreads(2);
  }

  private static List<StoredTensor> inputs(List<StoredTensor> tensors) {
    return tensors.stream()
        .flatMap(tensor -> ((Encoding.Quantised) tensor.encoding()).inputs().stream())
        .map(QuantisedInput::tensor)
        .toList();
  }

  private static long fileBytes(Path folder) throws IOException {
    long bytes = 0;
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.filter(one -> one.toString().endsWith(".safetensors")).toList()) {
        bytes += Files.size(file);
      }
    }
    return bytes;
  }

  /// Returns how many bytes of files the inputs of all ranks have, each byte counted once.
  private static long wanted(List<List<StoredTensor>> ranks) {
    Map<Location, BitSet> bytes = new HashMap<>();
    for (StoredTensor input : inputs(ranks.stream().flatMap(List::stream).toList())) {
      Extent extent = input.extent();
      BitSet file = bytes.computeIfAbsent(extent.file(), _ -> new BitSet());
      List<Copy2D> pieces =
          input.encoding() instanceof Encoding.Sliced(var slices)
              ? slices
              : List.of(Copy2D.ofRow(0, 0, extent.length()));
      for (Copy2D piece : pieces) {
        for (long row = 0; row < piece.rows(); row++) {
          int from = Math.toIntExact(extent.offset() + piece.rows(row, 1).source());
          file.set(from, from + Math.toIntExact(piece.width()));
        }
      }
    }
    return bytes.values().stream().mapToLong(BitSet::cardinality).sum();
  }

  /// Computes the tensors' values on the device that has their inputs, and requires that they are
  /// right.
  private void requireValues(List<StoredTensor> tensors, LoadedTensors loaded, Device.Cuda device) {
    int next = 0;
    for (StoredTensor tensor : tensors) {
      Encoding.Quantised layout = (Encoding.Quantised) tensor.encoding();
      List<Long> sources = new ArrayList<>();
      for (QuantisedInput _ : layout.inputs()) {
        sources.add(loaded.regions().get(next++).address());
      }
      Dequantisation what = Dequantised.of(tensor.shape(), layout, DType.F32);
      DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(device), what.targetBytes());
      try {
        session.convert(
            List.of(new Dequantisation.Task(what, sources, slab.address())),
            device,
            new Cancellation());
        byte[] made = TestFiles.bytes(new Region(slab, 0, what.targetBytes()));
        assertThat(TensorValues.sha256(made))
            .as("%s on %s", tensor.name(), device)
            .isEqualTo(TensorValues.sha256(TensorValues.bytes(tensor)));
      } finally {
        slab.release();
      }
    }
  }

  /// Requires that all bytes came by `gds` and that no byte was read twice.
  private void requireReadOnce(TransferReport report, Path folder) throws IOException {
    assertThat(report.bytesByTransport()).containsOnlyKeys(Transport.GDS);
    assertThat(cuFile.count("bytes read") - readBefore)
        .isPositive()
        .isLessThanOrEqualTo(fileBytes(folder));
    assertThat(cuda.count("to device bytes") - copiedBefore).isZero();
  }

  @ParameterizedTest
  @MethodSource("folders")
  void oneGpuGetsEachByteOnce(Path folder) throws IOException {
    List<StoredTensor> tensors = QuantisedCorpusTest.quantised(folder).toList();
    try (LoadedTensors loaded = LoadedTensors.load(session, inputs(tensors), FIRST, direct())) {
      requireReadOnce(loaded.report(), folder);
      requireValues(tensors, loaded, FIRST);
    }
  }

  @ParameterizedTest
  @MethodSource("folders")
  void replicasGetEachByteOnce(Path folder) throws IOException {
    List<StoredTensor> tensors = QuantisedCorpusTest.quantised(folder).toList();
    List<Device> devices = List.of(FIRST, SECOND);
    List<LoadedTensors> each =
        LoadedTensors.loadOnEach(session, inputs(tensors), devices, direct());
    try (LoadedTensors first = each.getFirst();
        LoadedTensors second = each.getLast()) {
      requireReadOnce(first.report(), folder);
      requireValues(tensors, first, FIRST);
      requireValues(tensors, second, SECOND);
    }
  }

  /// Returns a rank's part of a tensor, along the first axis that the number of ranks divides.
  private static StoredTensor part(StoredTensor tensor, int rank) {
    TensorShape shape = tensor.shape();
    for (int world = 2; ; world++) {
      for (int axis = 0; axis < shape.rank(); axis++) {
        if (shape.dimension(axis) % world == 0) {
          return new TensorSlice(axis, List.of(1)).of(tensor, rank, world);
        }
      }
    }
  }

  /// The parts of small tensors have rows that are too short for a disk, so the test asks for
  /// `gds`.
  @ParameterizedTest
  @MethodSource("folders")
  void ranksGetTheirPartsAndEachByteIsReadOnce(Path folder) throws IOException {
    List<StoredTensor> tensors = QuantisedCorpusTest.quantised(folder).toList();
    List<List<StoredTensor>> ranks =
        Stream.of(0, 1)
            .map(rank -> tensors.stream().map(tensor -> part(tensor, rank)).toList())
            .toList();
    List<LoadedTensors> each =
        LoadedTensors.loadSlices(
            session,
            ranks.stream().map(QuantisedDirectStubTest::inputs).toList(),
            List.of(FIRST, SECOND),
            direct().withTransport(Transport.GDS));
    try (LoadedTensors first = each.getFirst();
        LoadedTensors second = each.getLast()) {
      requireReadOnce(first.report(), folder);
      assertThat(cuFile.count("bytes read") - readBefore).isEqualTo(wanted(ranks));
      requireValues(ranks.getFirst(), first, FIRST);
      requireValues(ranks.getLast(), second, SECOND);
    }
  }
}
