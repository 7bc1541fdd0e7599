// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.gguf.GgufHubConfig;
import dev.gantry.formats.internal.gguf.GgufHubNames;
import dev.gantry.formats.internal.quantised.QuantisedWeights;
import dev.gantry.formats.internal.safetensors.SafetensorsSums;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.TensorReading;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Parsers of weights, which are opened, planned and loaded.
final class Weights {
  /// The largest tensors that are loaded; larger ones are only described.
  private static final long MOST_BYTES = 16 << 20;

  private static final GantrySession SESSION = GantrySession.shared();
  private static final TransferOptions ONE_THREAD = TransferOptions.defaults().withThreads(1);

  /// One input in this many is loaded by the session's threads; the caller's thread reads the
  /// values of the others.
  private static final int LOADS = 16;

  private Weights() {}

  /// Returns a parser of a file with this name. The described tensors must lie within the file.
  static Target.Parser file(String name) {
    return input -> {
      WeightsCatalogue weights = opened(Places.file(name, input), input.length);
      weights.verify(SESSION);
      load(weights, input);
    };
  }

  /// Reads a safetensors file. Its tensors must fill the file from the end of the header to the
  /// end of the file, by the header's length as this method reads it, and each tensor must have as
  /// many bytes as its shape and dtype need.
  static void safetensors(byte[] input) {
    WeightsCatalogue weights = opened(Places.file("w.safetensors", input), input.length);
    long at = Long.BYTES + ByteBuffer.wrap(input).order(ByteOrder.LITTLE_ENDIAN).getLong();
    for (StoredTensor tensor : weights.tensors().values()) {
      long bits = tensor.dtype().bits();
      for (long axis : tensor.shape().toArray()) {
        bits = Math.multiplyExact(bits, axis);
      }
      if (tensor.extent().offset() != at || tensor.extent().length() * Byte.SIZE != bits) {
        throw new AssertionError(tensor + " at " + at + " of " + bits + " bits");
      }
      at = tensor.extent().end();
    }
    if (at != input.length) {
      throw new AssertionError("tensors end at " + at + " of " + input.length);
    }
    load(weights, input);
  }

  private static WeightsCatalogue opened(Path file, int length) {
    try {
      WeightsCatalogue weights = open(file);
      for (StoredTensor tensor : weights.tensors().values()) {
        if (tensor.extent().end() > length) {
          throw new AssertionError(tensor + " ends behind the file's " + length + " bytes");
        }
      }
      return weights;
    } catch (MalformedFileException refusal) {
      if (refusal.offset() > length) {
        throw new AssertionError("an offset behind the file's " + length + " bytes", refusal);
      }
      throw refusal;
    }
  }

  /// Reads a folder of weights from a [Bundle].
  static void folder(byte[] input) {
    load(open(Places.folder("weights", Bundle.files(input))), input);
  }

  /// Reads a GGUF file, and its description of a model.
  static void gguf(byte[] input) {
    WeightsCatalogue weights = opened(Places.file("w.gguf", input), input.length);
    WeightsCatalogue named = GgufHubNames.of(weights);
    if (named.tensors().size() != weights.tensors().size()) {
      throw new AssertionError("tensors are lost when they are named");
    }
    load(weights, input);
    try {
      var _ = GgufHubConfig.of(weights);
      var _ = GgufHubConfig.stretches(SESSION, weights);
    } catch (MalformedFileException _) {
      // The file need not describe a model of the hub.
    }
  }

  /// Reads the folder of a quantised model, and computes its values.
  static void quantised(byte[] input) {
    SequencedMap<String, StoredTensor> tensors =
        QuantisedWeights.tensors(SESSION, open(Places.folder("quantised", Bundle.files(input))));
    load(tensors.values(), input);
  }

  /// Reads a safetensors file with its file of checksums.
  static void sums(byte[] input) {
    Path folder = Places.folder("sums", Bundle.files(input));
    var _ = SafetensorsSums.of(SESSION, open(folder.resolve("w.safetensors")));
  }

  static byte[] exampleSums(byte[] safetensors) {
    Path file =
        Places.folder("made", Map.of("w.safetensors", safetensors)).resolve("w.safetensors");
    int _ = SafetensorsSums.build(SESSION, file);
    return SeedFiles.bundle(file.getParent(), "");
  }

  private static WeightsCatalogue open(Path path) {
    return WeightsFormats.open(SESSION, Location.of(path));
  }

  static void load(WeightsCatalogue weights, byte[] input) {
    load(weights.tensors().values(), input);
  }

  private static void load(Collection<StoredTensor> tensors, byte[] input) {
    List<StoredTensor> small = new ArrayList<>();
    long bytes = 0;
    for (StoredTensor tensor : tensors) {
      if (tensor.bytes() <= MOST_BYTES - bytes) {
        small.add(tensor);
        bytes += tensor.bytes();
      }
    }
    if (Math.floorMod(Arrays.hashCode(input), LOADS) == 0) {
      LoadedTensors.load(SESSION, small, Device.HOST, ONE_THREAD).close();
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(Math.max(1, bytes), Long.BYTES);
      for (StoredTensor tensor : small) {
        TensorReading.read(SESSION, tensor, target.asSlice(0, tensor.bytes()));
      }
    }
  }
}
