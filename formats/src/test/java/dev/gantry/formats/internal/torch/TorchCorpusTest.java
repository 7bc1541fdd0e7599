// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.Verdict;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormatContract;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.testing.ChangingFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Gantry's verdict on each corpus file is PyTorch's. The system property `gantry.torch.corpus`
/// names a folder of further files with their `expected.json`.
class TorchCorpusTest {
  @TempDir private Path temporary;

  private static final Path CORPUS = Path.of("src/test/resources/corpus/torch");

  /// Files of further kinds, protocols and dtypes, which the folder's `make.py` has made.
  private static final Path KINDS =
      Path.of(System.getProperty("gantry.torch.corpus", "src/test/resources/corpus/torch-kinds"));

  /// Files whose storages PyTorch swaps; the corpus does not say whether a reader must swap them.
  private static final Set<String> EITHER = Set.of("big-endian.pt");

  static Stream<Arguments> all() throws IOException {
    return Stream.concat(of(CORPUS), of(KINDS));
  }

  private static Stream<Arguments> of(Path corpus) throws IOException {
    return Verdict.readAll(corpus.resolve("expected.json")).entrySet().stream()
        .filter(entry -> !EITHER.contains(entry.getKey()))
        .map(entry -> Arguments.of(corpus.resolve(entry.getKey()), entry.getValue()));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("all")
  void aFileIsReadAsPyTorchReadsIt(Path file, Verdict verdict) {
    if (!verdict.valid()) {
      MalformedFileException fault =
          catchThrowableOfType(MalformedFileException.class, () -> open(file));
      assertThat(fault).as(file.toString()).isNotNull();
      assertThat(fault.file()).isEqualTo(Location.of(file));
      assertThat(fault.getMessage()).doesNotContain("\n");
      return;
    }
    WeightsCatalogue weights = open(file);
    assertThat(weights.format()).isEqualTo("PyTorch");
    Map<String, String> found = new TreeMap<>();
    weights.tensors().forEach((name, tensor) -> found.put(name, described(tensor)));
    assertThat(found)
        .isEqualTo(
            verdict.dtypes().keySet().stream()
                .collect(
                    Collectors.toMap(
                        name -> name,
                        name ->
                            verdict.dtypes().get(name)
                                + verdict.shapes().get(name)
                                + verdict.sha256().get(name))));
    weights.verify(GantrySession.shared());
  }

  /// The second version of the file has other bytes in all storages.
  @Test
  void aFileThatChangesAtAnyCallIsOfOneVersionOrRefused() throws IOException {
    byte[] before = Files.readAllBytes(CORPUS.resolve("training.pt"));
    Path file = Files.write(temporary.resolve("changing.pt"), before);
    byte[] after = before.clone();
    boolean[] changed = new boolean[after.length];
    for (StoredTensor tensor : open(file).tensors().values()) {
      for (long at = tensor.extent().offset(); at < tensor.extent().end(); at++) {
        changed[(int) at] = true;
      }
    }
    for (int at = 0; at < after.length; at++) {
      after[at] = changed[at] ? (byte) ~before[at] : before[at];
    }
    ChangingFile.everywhere(file, before, after, WeightsFormatContract::loaded);
  }

  private static String described(StoredTensor tensor) {
    return tensor.dtype().name()
        + LongStream.of(tensor.shape().toArray()).boxed().toList()
        + TensorValues.sha256(TensorValues.bytes(tensor));
  }

  private static WeightsCatalogue open(Path file) {
    return WeightsFormats.open(GantrySession.shared(), Location.of(file));
  }

  @ParameterizedTest(name = "{0}: {1} at {2}")
  @CsvSource({
    "torch/cut-pickle.pt, pickle-past-end, 554",
    "torch/evil-reduce.pt, unsafe-global, 233",
    "torch/missing-storage.pt, missing-storage, 157",
    "torch/no-pickle.pt, no-pickle, 0",
    "torch/short-storage.pt, storage-too-short, 157",
    "torch/text.pt, not-pytorch, 0",
    "torch/truncated.pt, invalid-archive, 0",
    "torch-kinds/c128-zip.pt, unsupported-dtype, 229",
    "torch-kinds/conj-zip.pt, unsupported-tensor, 244",
    "torch-kinds/meta-zip.pt, unsupported-tensor, 157",
    "torch-kinds/module-zip.pt, unsafe-global, 66",
    "torch-kinds/numpy-zip.pt, unsafe-global, 77",
    "torch-kinds/plain.pkl, another-format, 0",
    "torch-kinds/quant-legacy.pt, unsupported-dtype, 258",
    "torch-kinds/script.pt, torchscript, 320",
    "torch-kinds/sparse-zip.pt, unsupported-tensor, 434"
  })
  void aBadFileIsRefusedWithItsFault(String name, String kind, long offset) {
    MalformedFileException fault =
        catchThrowableOfType(MalformedFileException.class, () -> open(CORPUS.resolveSibling(name)));
    assertThat(fault.kind() + " at " + fault.offset()).isEqualTo(kind + " at " + offset);
  }

  @Test
  void aFunctionThatIsRefusedIsNamed() {
    assertThat(
            catchThrowableOfType(
                MalformedFileException.class, () -> open(CORPUS.resolve("evil-reduce.pt"))))
        .hasMessageEndingWith(
            ": unsafe-global: the pickle refers to posix.system, which is not a tensor, storage or"
                + " plain container; nothing of it was run");
  }

  /// A load by any transport returns the bytes of stored members unchanged.
  @Test
  void denseTensorsArePlain() {
    assertThat(open(CORPUS.resolve("every-dtype.pt")).tensors().values())
        .allMatch(StoredTensor::isPlain);
    assertThat(open(CORPUS.resolve("legacy.pt")).tensors().values())
        .allMatch(StoredTensor::isPlain);
    WeightsCatalogue views = open(CORPUS.resolve("views.pt"));
    assertThat(views.tensors().get("rows").isPlain()).isTrue();
    assertThat(views.tensors().get("transposed").encoding()).isInstanceOf(Encoding.Strided.class);
    WeightsCatalogue tied = open(CORPUS.resolve("tied-parameters.pt"));
    assertThat(tied.tensors().get("wte.weight").extent())
        .isEqualTo(tied.tensors().get("lm_head.weight").extent());
    assertThat(tied.checksums()).hasSize(2);
  }

  @Test
  void bigEndianStoragesAreSwapped() {
    StoredTensor big = open(CORPUS.resolve("big-endian.pt")).tensors().get("base");
    byte[] swapped = TensorValues.bytes(big);
    byte[] little = TensorValues.bytes(open(CORPUS.resolve("views.pt")).tensors().get("base"));
    for (int i = 0; i < little.length; i++) {
      assertThat(swapped[i]).isEqualTo(little[i ^ 3]);
    }
  }

  @Test
  void numbersAndStringsAreNotes() {
    assertThat(open(CORPUS.resolve("training.pt")).metadata())
        .containsEntry("epoch", "3")
        .containsEntry("note", "text")
        .containsEntry("lr", "0.001")
        .containsEntry("none", "None")
        .doesNotContainKey("list.0");
  }

  @Test
  void aFolderOfDataFilesIsOpenedByItsIndex() throws IOException {
    Path folder = KINDS.resolve("sharded");
    WeightsCatalogue weights = open(folder);
    assertThat(weights.files()).hasSize(2);
    assertThat(
            catchThrowableOfType(
                MalformedFileException.class,
                () -> open(folder.resolve("pytorch_model-00001-of-00002.bin"))))
        .isNull();
  }

  @ParameterizedTest
  @CsvSource({
    "1e-8, 1e-08", "0.0001, 0.0001", "-1.5e-5, -1.5e-05", "123456789012.5, 123456789012.5",
    "1e15, 1000000000000000.0", "1e16, 1e+16", "6.02e123, 6.02e+123", "100, 100.0",
    "-0.0, -0.0", "NaN, nan", "-Infinity, -inf"
  })
  void realNumbersAreNotesAsPythonWritesThem(double number, String note) {
    assertThat(StateDict.note(new PickleValue.Real(number))).isEqualTo(note);
  }

  /// A clone without Git LFS leaves such a pointer.
  @Test
  void aFolderWithAPointerInsteadOfItsFileSaysWhatThatIs() throws IOException {
    Files.writeString(
        temporary.resolve("pytorch_model.bin"), "version https://git-lfs.github.com/spec/v1\n");
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(temporary)))
        .hasMessageContaining("another-format: not PyTorch: the file is a Git LFS pointer");
  }

  @Test
  void aLegacyFileThatIsCutBeforeAStorageSaysSo() throws IOException {
    byte[] whole = Files.readAllBytes(CORPUS.resolve("legacy.pt"));
    StoredTensor last =
        open(CORPUS.resolve("legacy.pt")).tensors().values().stream()
            .max(Comparator.comparingLong(tensor -> tensor.extent().offset()))
            .orElseThrow();
    Path cut = temporary.resolve("cut.pt");
    Files.write(cut, Arrays.copyOf(whole, (int) last.extent().offset() - 1));
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(cut)))
        .hasMessageMatching(".*: storage-past-end: the file ends before storage '[0-9]+'");
    Files.write(cut, Arrays.copyOf(whole, whole.length - 1));
    assertThat(catchThrowableOfType(MalformedFileException.class, () -> open(cut)))
        .hasMessageMatching(".*: storage-past-end: .* elements, and the file ends before them");
  }
}
