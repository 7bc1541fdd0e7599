// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.cli.internal.input.TensorParts;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.TensorSelection;
import dev.gantry.djl.Weights;
import dev.gantry.djl.internal.ndarray.ArrayMemory;
import dev.gantry.formats.internal.gguf.GgufHubNames;
import dev.gantry.formats.internal.quantised.QuantisedWeights;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.security.MessageDigest;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.concurrent.atomic.AtomicReference;

/// Computes the digests of the arrays that a load with a cast gives: floating-point tensors are
/// cast to the type, and quantised tensors are dequantised to it. Each array has a digest, under
/// the tensor's name in the hub's model.
public final class CastDigests {
  private static final int CHUNK_BYTES = 4 << 20;

  private CastDigests() {}

  /// Compares the checksums in the files, then loads all tensors and computes the digests.
  ///
  /// @param location the location that `catalogue` was opened from
  /// @throws dev.gantry.core.MisuseException if a tensor cannot be cast
  public static TensorDigests of(
      GantrySession session,
      Location location,
      WeightsCatalogue catalogue,
      DataType type,
      ai.djl.Device device) {
    catalogue.verify(session);
    List<StoredTensor> tensors =
        List.copyOf(QuantisedWeights.tensors(session, GgufHubNames.of(catalogue)).values());
    SequencedMap<String, TensorDigests.Digest> digests = new LinkedHashMap<>();
    AtomicReference<TransferReport> report = new AtomicReference<>(TransferReport.NOTHING);
    MessageDigest sha256 = TensorDigests.sha256();
    long bytes = 0;
    try (Weights opened = Weights.open(text(location), session);
        Weights weights = opened.hubNames();
        NDManager manager = Engine.getEngine("PyTorch").newBaseManager(device);
        Progress bar = new Progress("digest", tensors.size());
        Arena arena = Arena.ofConfined()) {
      MemorySegment chunk = arena.allocate(CHUNK_BYTES);
      for (int begin = 0, end; begin < tensors.size(); begin = end) {
        end = TensorParts.end(tensors, begin);
        List<String> names = tensors.subList(begin, end).stream().map(StoredTensor::name).toList();
        LoadOptions options =
            LoadOptions.builder()
                .optCast(type)
                .optSelection(TensorSelection.names(names))
                .optReport(part -> report.updateAndGet(before -> before.plus(part)))
                .build();
        try (NDList arrays = weights.load(manager, options)) {
          for (NDArray array : arrays) {
            try (ArrayMemory memory = ArrayMemory.of(array)) {
              bytes += memory.bytes();
              String text = digest(session, memory, sha256, chunk);
              digests.put(
                  array.getName(), new TensorDigests.Digest(memory.dtype(), memory.shape(), text));
            }
          }
        }
        bar.onProgress(end, tensors.size());
      }
    }
    return new TensorDigests("tensors", digests, Optional.empty(), bytes, report.get());
  }

  /// Returns the text by which `Weights` opens the location: a URL with its query, which
  /// the location's `toString` leaves out.
  private static String text(Location location) {
    return switch (location) {
      case Location.Local local -> local.path().toAbsolutePath().toString();
      case Location.Remote remote -> remote.uri().toString();
    };
  }

  private static String digest(
      GantrySession session, ArrayMemory memory, MessageDigest sha256, MemorySegment chunk) {
    for (long at = 0; at < memory.bytes(); at += chunk.byteSize()) {
      long length = Math.min(chunk.byteSize(), memory.bytes() - at);
      session.copy(part(memory.memory(), at, length), chunk);
      sha256.update(chunk.asSlice(0, length).asByteBuffer());
    }
    return TensorDigests.ended(sha256);
  }

  private static Memory part(Memory memory, long at, long length) {
    return switch (memory) {
      case Memory.OnHost(MemorySegment segment) -> new Memory.OnHost(segment.asSlice(at, length));
      case Memory.OnDevice(var device, long address, _) ->
          new Memory.OnDevice(device, address + at, length);
    };
  }
}
