// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Memory;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.internal.safetensors.Verdict;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.TensorSlice;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Folders that `torch.distributed.checkpoint` has written on one rank and on several, by the
/// corpus' `make.py`.
class DcpCorpusTest {
  private static final Path CORPUS =
      Path.of(System.getProperty("gantry.dcp.corpus", "src/test/resources/corpus/dcp"));

  @TempDir private Path temporary;

  @Test
  void aDataFileAloneIsNamedAsAPartOfItsFolder() {
    assertThat(
            catchThrowableOfType(
                MalformedFileException.class, () -> open(CORPUS.resolve("one/__0_0.distcp"))))
        .hasMessageContaining("__0_0.distcp: offset 0: one-of-a-folder: ");
  }

  static Stream<Arguments> all() throws IOException {
    return Verdict.readAll(CORPUS.resolve("expected.json")).entrySet().stream()
        .map(entry -> Arguments.of(CORPUS.resolve(entry.getKey()), entry.getValue()));
  }

  private static WeightsCatalogue open(Path file) {
    return WeightsFormats.open(GantrySession.shared(), Location.of(file));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("all")
  void aFolderHasTheTensorsThatWereSaved(Path folder, Verdict verdict) {
    WeightsCatalogue weights = open(folder);
    assertThat(weights.format()).isEqualTo("DCP");
    Map<String, String> expected =
        verdict.dtypes().keySet().stream()
            .collect(
                Collectors.toMap(
                    name -> name,
                    name ->
                        verdict.dtypes().get(name)
                            + verdict.shapes().get(name)
                            + verdict.sha256().get(name)));
    Map<String, String> read = new TreeMap<>();
    weights
        .tensors()
        .forEach((name, tensor) ->
            read.put(name, described(tensor) + TensorValues.sha256(TensorValues.bytes(tensor))));
    assertThat(read).isEqualTo(expected);
    assertThat(loaded(List.copyOf(weights.tensors().values()))).isEqualTo(expected);
    weights.verify(GantrySession.shared());
  }

  private static String described(StoredTensor tensor) {
    return tensor.dtype().name() + LongStream.of(tensor.shape().toArray()).boxed().toList();
  }

  private static Map<String, String> loaded(List<StoredTensor> tensors) {
    Map<String, String> found = new TreeMap<>();
    try (GantrySession session = GantrySession.open();
        LoadedTensors loaded =
            LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults())) {
      for (int i = 0; i < tensors.size(); i++) {
        byte[] bytes = new byte[Math.toIntExact(tensors.get(i).bytes())];
        loaded.regions().get(i).copyTo(MemorySegment.ofArray(bytes));
        found.put(tensors.get(i).name(), described(tensors.get(i)) + TensorValues.sha256(bytes));
      }
    }
    return found;
  }

  @Test
  void oneRanksTensorsArePlain() {
    WeightsCatalogue weights = open(CORPUS.resolve("one"));
    assertThat(weights.tensors().values().stream().filter(tensor -> !tensor.isPlain()))
        .map(StoredTensor::name)
        .containsExactly("view");
    assertThat(open(CORPUS.resolve("grid-4")).tensors().get("w0").encoding())
        .isInstanceOf(Encoding.Joined.class);
  }

  @Test
  void numbersAndStringsAreNotes() {
    assertThat(open(CORPUS.resolve("one")).metadata())
        .containsEntry("epoch", "3")
        .containsEntry("note", "text")
        .containsEntry("optim.param_groups.0.betas", "[0.9, 0.999]")
        .containsEntry("optim.param_groups.0.amsgrad", "False");
  }

  @Test
  void whatIsWrittenIsRead() {
    Path folder = temporary.resolve("written");
    MemorySegment data = MemorySegment.ofArray(new byte[] {1, 2, 3, 4, 5, 6});
    NewTensor tensor = new NewTensor("a.b", DType.I16, TensorShape.of(3), new Memory.OnHost(data));
    Map<String, Object> values = new TreeMap<>();
    values.put("epoch", 1L << 40);
    values.put("loss", -0.25);
    values.put("name", "ü");
    GantrySession session = GantrySession.shared();
    var _ = NewDcp.of(folder, List.of(tensor), values).write(session, WriteOptions.defaults());
    WeightsCatalogue weights = open(folder);
    assertThat(weights.tensors().keySet()).containsExactly("a.b");
    assertThat(TensorValues.bytes(weights.tensors().get("a.b"))).containsExactly(1, 2, 3, 4, 5, 6);
    assertThat(weights.metadata())
        .isEqualTo(Map.of("epoch", "1099511627776", "loss", "-0.25", "name", "ü"));
  }

  /// The ranks of another world take other parts than the saved ones.
  @ParameterizedTest
  @ValueSource(strings = {"axis0-3", "axis1-2", "grid-4", "last-3", "hybrid-4"})
  void slicesAreThoseOfTheWhole(String folder) {
    WeightsCatalogue weights = open(CORPUS.resolve(folder));
    for (String name : new String[] {"w0", "cube"}) {
      StoredTensor tensor = weights.tensors().get(name);
      byte[] whole = TensorValues.bytes(tensor);
      for (int axis = 0; axis < tensor.shape().rank(); axis++) {
        long length = tensor.shape().dimension(axis);
        for (int world = 1; world <= length; world++) {
          for (int rank = 0; length % world == 0 && rank < world; rank++) {
            StoredTensor part = new TensorSlice(axis, List.of(1)).of(tensor, rank, world);
            assertThat(TensorValues.bytes(part))
                .as("%s, axis %s, rank %s of %s", name, axis, rank, world)
                .isEqualTo(cut(tensor, whole, axis, length / world * rank, length / world));
          }
        }
      }
    }
  }

  private static byte[] cut(StoredTensor tensor, byte[] whole, int axis, long from, long count) {
    int inner = tensor.dtype().bits() / Byte.SIZE;
    for (int i = axis + 1; i < tensor.shape().rank(); i++) {
      inner *= Math.toIntExact(tensor.shape().dimension(i));
    }
    int pitch = Math.toIntExact(inner * tensor.shape().dimension(axis));
    ByteArrayOutputStream cut = new ByteArrayOutputStream();
    for (int row = 0; row < whole.length; row += pitch) {
      cut.write(whole, Math.toIntExact(row + from * inner), Math.toIntExact(count * inner));
    }
    return cut.toByteArray();
  }

  @Test
  void aSliceReadsItsOwnBytes() {
    StoredTensor tensor = open(CORPUS.resolve("axis0-3")).tensors().get("w0");
    StoredTensor part = new TensorSlice(1, List.of(1)).of(tensor, 1, 2);
    assertThat(
            ((Encoding.Joined) part.encoding()).parts().stream().mapToLong(p -> p.rows().bytes()))
        .hasSize(3)
        .satisfies(bytes ->
            assertThat(bytes.stream().mapToLong(Long::longValue).sum()).isEqualTo(part.bytes()));
    try (GantrySession session = GantrySession.open();
        LoadedTensors loaded =
            LoadedTensors.load(session, List.of(part), Device.HOST, TransferOptions.defaults())) {
      TransferReport report = loaded.report();
      assertThat(loaded.regions().getFirst().length()).isEqualTo(part.bytes());
      assertThat(report.bytes()).isPositive();
    }
  }

  private Path copy(String name) throws IOException {
    Path copy = Files.createDirectory(temporary.resolve(name + System.nanoTime()));
    try (Stream<Path> files = Files.list(CORPUS.resolve(name))) {
      for (Path file : files.toList()) {
        Files.copy(file, copy.resolve(file.getFileName()));
      }
    }
    return copy;
  }

  @Test
  void aFileThatIsMissingOrCutIsRefused() throws IOException {
    Path cut = copy("axis0-3");
    Path data = cut.resolve("__1_0.distcp");
    Files.write(data, Arrays.copyOf(Files.readAllBytes(data), 1000));
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> open(cut));
    assertThat(fault.kind()).isEqualTo("item-past-end");
    assertThat(fault.file()).isEqualTo(Location.of(data));
    Files.delete(data);
    assertThat(catchThrowableOfType(Exception.class, () -> open(cut)))
        .hasMessageContaining("__1_0.distcp");
  }

  /// Writes a folder of tensors of two elements each.
  private Path written(String name, DType dtype, TensorShape shape, String... names) {
    Path target = temporary.resolve(name);
    List<NewTensor> tensors =
        Stream.of(names)
            .map(each ->
                new NewTensor(
                    each, dtype, shape, new Memory.OnHost(MemorySegment.ofArray(new byte[8]))))
            .toList();
    var _ = NewDcp.of(target, tensors).write(GantrySession.shared(), WriteOptions.defaults());
    return target;
  }

  private static String fault(Path folder) {
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> open(folder));
    assertThat(fault).as("it is refused").isNotNull();
    return fault.kind();
  }

  /// The data files have the same size and the same places.
  @Test
  void theDataOfAnotherCheckpointAreRefused() throws IOException {
    Path floats = written("floats", DType.F32, TensorShape.of(2), "t");
    Path data = floats.resolve("__0_0.distcp");
    for (Path other :
        List.of(
            written("integers", DType.I32, TensorShape.of(2), "t"),
            written("turned", DType.F32, TensorShape.of(2, 1), "t"))) {
      byte[] bytes = Files.readAllBytes(other.resolve("__0_0.distcp"));
      Files.write(data, Arrays.copyOf(bytes, Math.toIntExact(Files.size(data))));
      assertThat(fault(floats)).isIn("wrong-chunk", "invalid-archive");
    }
  }

  /// Returns the folder after each text of its metadata has been replaced by another of the same length.
  private static Path changed(Path folder, byte[] from, byte[] to) throws IOException {
    Path metadata = folder.resolve(".metadata");
    String text = Files.readString(metadata, StandardCharsets.ISO_8859_1);
    String old = new String(from, StandardCharsets.ISO_8859_1);
    assertThat(text).contains(old);
    String replaced = text.replace(old, new String(to, StandardCharsets.ISO_8859_1));
    Files.writeString(metadata, replaced, StandardCharsets.ISO_8859_1);
    return folder;
  }

  private static byte[] number(String name, long value) {
    return inside(new PickleWriter().text(name).integer(value));
  }

  private static byte[] text(String text) {
    return inside(new PickleWriter().text(text));
  }

  /// Returns what was written, without the protocol before it and the end after it.
  private static byte[] inside(PickleWriter written) {
    byte[] bytes = written.end();
    return Arrays.copyOfRange(bytes, new PickleWriter().end().length - 1, bytes.length - 1);
  }

  @Test
  void metadataThatContradictThemselvesAreRefused() throws IOException {
    TensorShape two = TensorShape.of(2);
    assertThat(
            fault(
                changed(
                    written("outside", DType.F32, two, "t"),
                    text("__0_0.distcp"),
                    text("../../a.dist"))))
        .isEqualTo("unsafe-file-name");
    assertThat(
            fault(
                changed(written("parent", DType.F32, two, "t"), text("__0_0.distcp"), text(".."))))
        .isEqualTo("unsafe-file-name");
    Path twice = written("twice", DType.F32, two, "a", "b");
    long second = Files.size(written("once", DType.F32, two, "a").resolve("__0_0.distcp"));
    assertThat(fault(changed(twice, number("offset", second), number("offset", 0))))
        .isEqualTo("items-overlap");
  }
}
