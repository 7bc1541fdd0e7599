// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.internal.weights.TensorSlice;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The values of each folder of quantised weights equal, bit for bit, the values that its
/// publisher's own code computes.
class QuantisedCorpusTest {
  private static final Path CORPUS = Path.of("src/test/resources/corpus/quantised");

  /// Dtypes that no layout uses, by their number of bits.
  private static final Map<Integer, DType> OTHER =
      Map.of(8, DType.BOOL, 16, DType.U16, 32, DType.U32, 64, DType.U64);

  /// The names of parts that contain text or that weights do not need.
  private static final String NO_NUMBERS =
      ".*(input|output|activation|weight_format|quant_state).*";

  private static List<Path> folders(boolean damaged) throws IOException {
    try (Stream<Path> all = Files.list(CORPUS)) {
      return all.filter(
              folder -> expected(folder).text("status").orElseThrow().equals("damaged") == damaged)
          .sorted()
          .toList();
    }
  }

  static List<Path> good() throws IOException {
    return folders(false);
  }

  static List<Path> damaged() throws IOException {
    return folders(true);
  }

  private static JsonTree expected(Path folder) {
    try (FileBytes file = FileBytes.open(GantrySession.shared(), folder.resolve("expected.json"))) {
      return JsonTree.read(file);
    }
  }

  private static SequencedMap<String, StoredTensor> open(Path folder) {
    GantrySession session = GantrySession.shared();
    return QuantisedWeights.tensors(session, WeightsFormats.open(session, Location.of(folder)));
  }

  static Stream<StoredTensor> quantised(Path folder) {
    return open(folder).values().stream()
        .filter(tensor -> tensor.encoding() instanceof Encoding.Quantised);
  }

  @ParameterizedTest
  @MethodSource("good")
  void valuesAreThoseOfTheReference(Path folder) {
    SequencedMap<String, StoredTensor> tensors = open(folder);
    JsonTree expected = expected(folder).object("tensors");
    assertThat(tensors.keySet()).isEqualTo(expected.members().keySet());
    tensors.forEach((name, tensor) -> {
      JsonTree one = expected.object(name);
      assertThat(LongStream.of(tensor.shape().toArray()).boxed().toList())
          .as(name)
          .isEqualTo(one.counts("shape"));
      boolean dequantised = one.text("kind").orElseThrow().equals("dequantised");
      assertThat(tensor.encoding() instanceof Encoding.Quantised).isEqualTo(dequantised);
      if (dequantised) {
        assertThat(TensorValues.sha256(TensorValues.bytes(tensor)))
            .as(name)
            .isEqualTo(one.text("float32_sha256").orElseThrow());
      }
    });
  }

  @ParameterizedTest
  @MethodSource("damaged")
  void damageIsRefused(Path folder) {
    assertThatThrownBy(() -> open(folder)).isInstanceOf(MalformedFileException.class);
  }

  /// A scale, zero point or index with another dtype or shape is not read as something that it is
  /// not.
  @ParameterizedTest
  @MethodSource("good")
  void partsOfAnotherDtypeOrShapeAreRefused(Path folder) {
    WeightsCatalogue stored = WeightsFormats.open(GantrySession.shared(), Location.of(folder));
    SequencedMap<String, StoredTensor> found = open(folder);
    Set<String> seen = new HashSet<>(found.keySet());
    quantised(folder)
        .map(tensor -> ((Encoding.Quantised) tensor.encoding()).inputs().getFirst().tensor().name())
        .forEach(seen::add);
    for (StoredTensor part : stored.tensors().values()) {
      if (seen.contains(part.name()) || part.name().matches(NO_NUMBERS)) {
        continue;
      }
      // DeepSeek's experts are recognised by the dtype of their scales.
      if (!part.name().endsWith(".scale")) {
        DType other = OTHER.get(part.dtype().bits());
        requireRefused(stored, new StoredTensor(part.name(), other, part.shape(), part.extent()));
      }
      TensorShape longer = TensorShape.of(2, part.shape().elements().orElseThrow(), 2);
      Extent more =
          new Extent(part.extent().file(), part.extent().offset(), 4 * part.extent().length());
      requireRefused(stored, new StoredTensor(part.name(), part.dtype(), longer, more));
      long[] shape = part.shape().toArray();
      if (shape.length == 2 && shape[0] != shape[1] && Math.min(shape[0], shape[1]) > 1) {
        TensorShape turned = TensorShape.of(shape[1], shape[0]);
        requireRefused(stored, new StoredTensor(part.name(), part.dtype(), turned, part.extent()));
      }
    }
  }

  private static void requireRefused(WeightsCatalogue stored, StoredTensor part) {
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>(stored.tensors());
    tensors.put(part.name(), part);
    WeightsCatalogue damaged =
        new WeightsCatalogue(
            stored.format(), stored.files(), tensors.values(), stored.metadata(), List.of());
    assertThatThrownBy(
            () -> QuantisedWeights.tensors(GantrySession.shared(), damaged),
            "%s as %s %s",
            part.name(),
            part.dtype(),
            part.shape())
        .isInstanceOf(MalformedFileException.class);
  }

  /// Each rank's part equals that part of the whole tensor, and the parts of the inputs are no
  /// larger than necessary.
  @ParameterizedTest
  @MethodSource("good")
  void slicesAreThoseOfTheWhole(Path folder) {
    quantised(folder)
        .forEach(tensor -> {
          for (int axis = 0; axis < tensor.shape().rank(); axis++) {
            for (int world = 2; world <= 4; world++) {
              if (tensor.shape().dimension(axis) % world == 0) {
                requireSlices(tensor, axis, world);
              }
            }
          }
        });
  }

  private static void requireSlices(StoredTensor tensor, int axis, int world) {
    byte[] whole = bytes(tensor);
    long[] shape = tensor.shape().toArray();
    int outer = (int) Arrays.stream(shape, 0, axis).reduce(1, (a, b) -> a * b);
    int row = whole.length / outer;
    for (int rank = 0; rank < world; rank++) {
      StoredTensor slice = new TensorSlice(axis, List.of(1)).of(tensor, rank, world);
      byte[] part = bytes(slice);
      int width = row / world;
      for (int i = 0; i < outer; i++) {
        int from = i * row + rank * width;
        assertThat(Arrays.copyOfRange(part, i * width, (i + 1) * width))
            .as("%s, axis %s, rank %s of %s", tensor.name(), axis, rank, world)
            .isEqualTo(Arrays.copyOfRange(whole, from, from + width));
      }
      requireSmaller(
          (Encoding.Quantised) tensor.encoding(), (Encoding.Quantised) slice.encoding(), world);
    }
  }

  /// The codes are the largest input. A part may have one more of their elements on each side.
  private static void requireSmaller(Encoding.Quantised whole, Encoding.Quantised part, int world) {
    QuantisedInput codes = whole.inputs().getFirst();
    if (codes.axes().stream().anyMatch(axis -> axis.of() == null)) {
      return;
    }
    long edges = 2 * codes.tensor().bytes() / codes.tensor().shape().toArray()[0];
    long columns = codes.tensor().shape().toArray()[codes.tensor().shape().rank() - 1];
    assertThat(part.inputs().getFirst().tensor().bytes())
        .isLessThanOrEqualTo(
            codes.tensor().bytes() / world + Math.max(edges, 2 * codes.tensor().bytes() / columns));
  }

  private static byte[] bytes(StoredTensor tensor) {
    return TensorValues.bytes(tensor);
  }
}
