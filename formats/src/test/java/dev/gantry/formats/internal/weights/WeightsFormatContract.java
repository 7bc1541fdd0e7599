// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.formats.spi.WeightsFormat;
import dev.gantry.testing.ChangingFile;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The rules for all weights formats. A new format adds a subclass that writes its files.
@ExtendWith(NoLeaks.class)
public abstract class WeightsFormatContract {
  /// A tensor for a file.
  ///
  /// @param hex the tensor's bytes in hexadecimal, in C order, little endian
  public record Given(DType dtype, TensorShape shape, String hex) {
    public byte[] bytes() {
      return HexFormat.of().parseHex(hex);
    }
  }

  private static final long SEED = 20261122;

  @TempDir protected Path folder;

  /// Returns the name of the format.
  protected abstract String format();

  /// Returns the format's name in a catalogue of these files.
  protected String variant() {
    return format();
  }

  /// Returns a name for a file of the format.
  protected abstract String fileName();

  /// Writes a file with these tensors.
  protected abstract void write(Path file, Map<String, Given> tensors) throws IOException;

  /// Returns the tensors for the files; a format with fewer kinds of tensors returns other ones.
  protected Map<String, Given> tensors() {
    Random random = new Random(SEED);
    Map<String, Given> tensors = new LinkedHashMap<>();
    tensors.put("matrix", given(random, DType.F32, 5, 3));
    tensors.put("long", given(random, DType.I64, 1000));
    tensors.put("cube", given(random, DType.I16, 4, 3, 2));
    tensors.put("flags", given(random, DType.U8, 7));
    tensors.put("scalar", given(random, DType.F64));
    tensors.put("empty", given(random, DType.F32, 0, 4));
    return tensors;
  }

  public static Given given(Random random, DType dtype, long... dimensions) {
    TensorShape shape = TensorShape.of(dimensions);
    byte[] bytes = new byte[Math.toIntExact(StoredTensor.bytes(dtype, shape).orElseThrow())];
    random.nextBytes(bytes);
    return new Given(dtype, shape, HexFormat.of().formatHex(bytes));
  }

  private Path file() throws IOException {
    Path file = folder.resolve(fileName());
    write(file, tensors());
    return file;
  }

  private WeightsCatalogue open() throws IOException {
    return WeightsFormats.open(GantrySession.shared(), Location.of(file()));
  }

  @Test
  void theFormatIsRegistered() {
    assertThat(WeightsFormats.all()).map(WeightsFormat::name).contains(format());
  }

  @Test
  void aFileIsKnownByItsFirstBytesAlone() throws IOException {
    Path renamed = Files.move(file(), folder.resolve("renamed"));
    assertThat(WeightsFormats.formatOf(GantrySession.shared(), Location.of(renamed)).name())
        .isEqualTo(format());
    assertThat(WeightsFormats.open(GantrySession.shared(), Location.of(renamed)).tensors())
        .hasSize(tensors().size());
  }

  @Test
  void theCatalogueHasTheTensorsAndTheirValues() throws IOException {
    WeightsCatalogue weights = open();
    assertThat(weights.format()).isEqualTo(variant());
    assertThat(weights.tensors().keySet()).containsExactlyInAnyOrderElementsOf(tensors().keySet());
    tensors()
        .forEach((name, given) -> {
          StoredTensor tensor = weights.tensors().get(name);
          assertThat(tensor.name()).isEqualTo(name);
          assertThat(tensor.dtype()).isEqualTo(given.dtype());
          assertThat(tensor.shape()).isEqualTo(given.shape());
          assertThat(tensor.bytes()).isEqualTo(given.bytes().length);
          assertThat(TensorValues.bytes(tensor)).as(name).isEqualTo(given.bytes());
        });
    assertThat(weights.totalBytes())
        .isEqualTo(tensors().values().stream().mapToLong(given -> given.bytes().length).sum());
    weights.verify(GantrySession.shared());
  }

  @Test
  void loadsBringTheValues() throws IOException {
    WeightsCatalogue weights = open();
    List<StoredTensor> all = List.copyOf(weights.tensors().values());
    List<Long> progress = new ArrayList<>();
    TransferOptions options =
        TransferOptions.defaults().withProgress((done, _) -> progress.add(done));
    try (GantrySession session = GantrySession.open();
        LoadedTensors loaded = LoadedTensors.load(session, all, Device.HOST, options)) {
      for (int i = 0; i < all.size(); i++) {
        byte[] bytes = new byte[Math.toIntExact(all.get(i).bytes())];
        loaded.regions().get(i).copyTo(MemorySegment.ofArray(bytes));
        assertThat(bytes).isEqualTo(tensors().get(all.get(i).name()).bytes());
        assertThat(loaded.regions().get(i).address() % all.get(i).dtype().alignmentBytes())
            .isZero();
      }
      TransferReport report = loaded.report();
      assertThat(report.bytes()).isGreaterThanOrEqualTo(weights.totalBytes());
    }
    assertThat(progress).isSorted();
    assertThat(progress.getLast()).isGreaterThanOrEqualTo(weights.totalBytes());
  }

  @Test
  void mappingsBringTheValues() throws IOException {
    List<StoredTensor> all = List.copyOf(open().tensors().values());
    try (GantrySession session = GantrySession.open();
        LoadedTensors loaded = LoadedTensors.map(session, all, TransferOptions.defaults())) {
      for (int i = 0; i < all.size(); i++) {
        byte[] bytes = new byte[Math.toIntExact(all.get(i).bytes())];
        loaded.regions().get(i).copyTo(MemorySegment.ofArray(bytes));
        assertThat(bytes).isEqualTo(tensors().get(all.get(i).name()).bytes());
      }
    }
  }

  @Test
  void rowsAreAPartOfTheWhole() throws IOException {
    for (StoredTensor tensor : open().tensors().values()) {
      byte[] whole = TensorValues.bytes(tensor);
      if (tensor.shape().rank() == 0 || tensor.shape().dimension(0) == 0) {
        continue;
      }
      long rows = tensor.shape().dimension(0);
      int rowBytes = Math.toIntExact(whole.length / rows);
      for (long[] part : new long[][] {{0, rows}, {1, rows}, {0, 1}, {rows / 2, rows / 2}}) {
        assertThat(TensorValues.bytes(tensor.rows(part[0], part[1])))
            .as(tensor.name() + Arrays.toString(part))
            .isEqualTo(
                Arrays.copyOfRange(whole, (int) part[0] * rowBytes, (int) part[1] * rowBytes));
      }
    }
  }

  @Test
  void safetensorsAreMadeOfThem() throws IOException {
    Path made = folder.resolve("made.safetensors");
    try (GantrySession session = GantrySession.open();
        TensorSources sources = TensorSources.of(session, open())) {
      var _ =
          NewSafetensors.file(made, sources.tensors(), Map.of())
              .write(session, WriteOptions.defaults());
    }
    WeightsCatalogue weights = WeightsFormats.open(GantrySession.shared(), Location.of(made));
    tensors()
        .forEach((name, given) ->
            assertThat(TensorValues.bytes(weights.tensors().get(name))).isEqualTo(given.bytes()));
  }

  @Test
  void aFileThatChangesAtAnyCallIsOfOneVersionOrRefused() throws IOException {
    Path file = folder.resolve(fileName());
    write(file, tensors());
    byte[] before = Files.readAllBytes(file);
    Map<String, Given> others = new LinkedHashMap<>();
    tensors()
        .forEach((name, given) -> {
          byte[] bytes = given.bytes();
          for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) ~bytes[i];
          }
          others.put(
              name, new Given(given.dtype(), given.shape(), HexFormat.of().formatHex(bytes)));
        });
    Files.delete(file);
    write(file, others);
    byte[] after = Files.readAllBytes(file);
    ChangingFile.everywhere(file, before, after, WeightsFormatContract::loaded);
  }

  /// Returns the bytes of all tensors, which one thread loads with small reads.
  public static byte[] loaded(GantrySession session, Path file) {
    List<StoredTensor> all =
        List.copyOf(WeightsFormats.open(session, Location.of(file)).tensors().values());
    ByteArrayOutputStream got = new ByteArrayOutputStream();
    TransferOptions options =
        TransferOptions.defaults()
            .withThreads(1)
            .withLimits(PlanLimits.DEFAULT.withRequestBytes(PlanLimits.BLOCK_BYTES));
    try (LoadedTensors loaded = LoadedTensors.load(session, all, Device.HOST, options)) {
      loaded.regions().forEach(region -> got.writeBytes(TestFiles.bytes(region)));
    }
    return got.toByteArray();
  }

  /// The catalogue's metadata need not be true for the other file.
  @Test
  void aFileThatIsReplacedAfterItWasOpenedIsRefused() throws IOException {
    Path file = file();
    WeightsCatalogue weights = WeightsFormats.open(GantrySession.shared(), Location.of(file));
    Path copy = Files.copy(file, folder.resolve("copy"));
    Files.move(copy, file, StandardCopyOption.REPLACE_EXISTING);
    List<StoredTensor> tensors = List.copyOf(weights.tensors().values());
    try (GantrySession session = GantrySession.open()) {
      assertThatThrownBy(
              () -> LoadedTensors.load(session, tensors, Device.HOST, TransferOptions.defaults()))
          .hasMessageContaining("the file changed after its header was read")
          .asInstanceOf(InstanceOfAssertFactories.type(MalformedFileException.class))
          .returns(Location.of(file), MalformedFileException::file)
          .returns("changed-meanwhile", MalformedFileException::kind);
    }
  }

  @Test
  void aFileThatIsCutIsRefused() throws IOException {
    Path file = file();
    byte[] whole = Files.readAllBytes(file);
    Random random = new Random(SEED);
    for (int i = 0; i < 200; i++) {
      Files.write(file, Arrays.copyOf(whole, i < 60 ? i : random.nextInt(whole.length)));
      assertThatThrownBy(() -> readAll(file))
          .as("cut to %d bytes", Files.size(file))
          .isInstanceOf(MalformedFileException.class);
    }
  }

  /// A damaged byte gives a fault or other values, and no other error.
  @Test
  void aDamagedFileIsRefusedOrRead() throws IOException {
    Path file = file();
    byte[] whole = Files.readAllBytes(file);
    Random random = new Random(SEED);
    for (int i = 0; i < 500; i++) {
      byte[] damaged = whole.clone();
      for (int change = 0; change <= random.nextInt(3); change++) {
        damaged[random.nextInt(i % 2 == 0 ? Math.min(300, whole.length) : whole.length)] =
            (byte) random.nextInt();
      }
      Files.write(file, damaged);
      try {
        readAll(file);
      } catch (MalformedFileException fault) {
        assertThat(fault.file()).isEqualTo(Location.of(file));
        assertThat(fault.offset()).isBetween(0L, (long) whole.length);
        assertThat(fault.getMessage()).doesNotContain("\n");
      }
    }
  }

  private static void readAll(Path file) {
    WeightsCatalogue weights = WeightsFormats.open(GantrySession.shared(), Location.of(file));
    weights.tensors().values().forEach(TensorValues::bytes);
    weights.verify(GantrySession.shared());
  }
}
