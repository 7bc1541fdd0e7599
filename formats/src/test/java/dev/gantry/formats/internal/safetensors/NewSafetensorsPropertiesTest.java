// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.LongRange;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeContainer;
import net.jqwik.api.lifecycle.BeforeTry;

/// Everything that is written can be read again, at the required offsets.
class NewSafetensorsPropertiesTest {
  private static GantrySession session = GantrySession.shared();

  private Path folder = Path.of("");

  @BeforeContainer
  static void open() {
    session = GantrySession.open();
  }

  @AfterContainer
  static void close() {
    session.close();
  }

  @BeforeTry
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory("gantry");
  }

  @AfterTry
  void removeFolder() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
        Files.delete(file);
      }
    }
  }

  /// Returns texts of all of Unicode.
  @Provide
  static Arbitrary<String> text() {
    return Arbitraries.integers()
        .between(0, Character.MAX_CODE_POINT)
        .filter(code -> code < Character.MIN_SURROGATE || code > Character.MAX_SURROGATE)
        .edgeCases(edges -> edges.add((int) '"', (int) '\\', 0x7f, 0x2028, 0x1f600))
        .list()
        .ofMaxSize(10)
        .map(codes -> {
          StringBuilder text = new StringBuilder();
          codes.forEach(text::appendCodePoint);
          return text.toString();
        });
  }

  /// Every tensor has a last dimension of 4, so that each dtype ends with a whole byte. A scalar
  /// of a sub-byte dtype would not, so there are no scalars.
  @Provide
  static Arbitrary<List<NewTensor>> tensors() {
    Arbitrary<TensorShape> shapes =
        Arbitraries.longs()
            .between(0, 5)
            .list()
            .ofMaxSize(3)
            .map(some ->
                TensorShape.of(
                    Stream.concat(some.stream(), Stream.of(4L))
                        .mapToLong(Long::longValue)
                        .toArray()));
    Arbitrary<NewTensor> arrays =
        Combinators.combine(text(), Arbitraries.of(DType.class), shapes, Arbitraries.longs())
            .as(NewSafetensorsPropertiesTest::tensor);
    Arbitrary<NewTensor> scalars =
        Combinators.combine(
                text(),
                Arbitraries.of(DType.class).filter(dtype -> dtype.bits() >= Byte.SIZE),
                Arbitraries.longs())
            .as((name, dtype, seed) -> tensor(name, dtype, TensorShape.of(), seed));
    return Arbitraries.frequencyOf(Tuple.of(4, arrays), Tuple.of(1, scalars))
        .list()
        .ofMaxSize(20)
        .uniqueElements(NewTensor::name);
  }

  @Provide
  static Arbitrary<Map<String, String>> notes() {
    return Arbitraries.maps(text(), text()).ofMaxSize(4);
  }

  private static NewTensor tensor(String name, DType dtype, TensorShape shape, long seed) {
    long length = shape.elements().orElseThrow() * dtype.bits() / Byte.SIZE;
    byte[] bytes = TestFiles.bytes(seed, Math.toIntExact(length));
    return new NewTensor(name, dtype, shape, new Memory.OnHost(MemorySegment.ofArray(bytes)));
  }

  @Property(tries = 100)
  void aFileGivesBackWhatItWasGiven(
      @ForAll("tensors") List<NewTensor> tensors, @ForAll("notes") Map<String, String> notes) {
    NewSafetensors made = NewSafetensors.file(folder.resolve("x.safetensors"), tensors, notes);
    assertReadBack(made, folder.resolve("x.safetensors"), tensors, notes);
  }

  @Property(tries = 150)
  void aFolderGivesBackWhatItWasGiven(
      @ForAll("tensors") List<NewTensor> tensors,
      @ForAll("notes") Map<String, String> notes,
      @ForAll @LongRange(min = 1, max = 3000) long fileBytes,
      @ForAll boolean indexOfOne) {
    DataFileOptions options = new DataFileOptions("model", fileBytes, indexOfOne);
    NewSafetensors made = NewSafetensors.folder(folder, tensors, notes, options);
    assertThat(made.index().isPresent()).isEqualTo(indexOfOne || made.dataFiles().size() > 1);
    assertReadBack(made, folder, tensors, notes);
    made.index()
        .ifPresent(index -> {
          SafetensorsIndex read =
              SafetensorsIndex.read(GantrySession.shared(), Location.of(index.file()));
          assertThat(index.file())
              .content()
              .contains("\"total_size\": " + made.totalBytes() + "\n");
          assertThat(read.weightMap().keySet())
              .containsExactlyElementsOf(new TreeSet<>(names(tensors)));
        });
  }

  private static List<String> names(List<NewTensor> tensors) {
    return tensors.stream().map(NewTensor::name).toList();
  }

  private static void assertReadBack(
      NewSafetensors made, Path place, List<NewTensor> tensors, Map<String, String> notes) {
    WriteReport report = made.write(session, WriteOptions.defaults().withThreads(1));
    WeightsCatalogue read = SafetensorsOpener.open(GantrySession.shared(), place);
    assertThat(read.metadata()).isEqualTo(notes);
    assertThat(read.totalBytes()).isEqualTo(made.totalBytes());
    assertThat(read.tensors().keySet()).containsExactlyInAnyOrderElementsOf(names(tensors));
    for (NewTensor tensor : tensors) {
      StoredTensor info = read.tensors().get(tensor.name());
      assertThat(info).isNotNull();
      assertThat(info.dtype()).isEqualTo(tensor.dtype());
      assertThat(info.shape()).isEqualTo(tensor.shape());
      assertThat(TestFiles.expected(info.extent())).isEqualTo(bytes(tensor.source()));
      assertThat(info.extent().offset() % tensor.dtype().alignmentBytes()).isZero();
    }
    for (NewDataFile dataFile : made.dataFiles()) {
      SafetensorsHeader header =
          SafetensorsHeader.read(GantrySession.shared(), dataFile.file().file());
      assertThat(header.dataStart() % 4096).isZero();
      assertThat(header.metadata()).containsExactlyEntriesOf(new TreeMap<>(notes));
      // Tensors without bytes are sorted by name among those with the same offset.
      assertThat(header.tensors().keySet())
          .containsExactlyInAnyOrderElementsOf(names(dataFile.tensors()));
    }
    assertChecksumsLineUp(made, report);
  }

  private static void assertChecksumsLineUp(NewSafetensors made, WriteReport report) {
    assertThat(report.files().stream().map(WriteReport.FileReport::file))
        .containsExactlyElementsOf(made.files().stream().map(NewFile::file).toList());
    int first = report.files().size() - made.dataFiles().size();
    for (int i = 0; i < made.dataFiles().size(); i++) {
      List<Integer> parts = report.files().get(first + i).checksums().orElseThrow().parts();
      List<NewTensor> tensors = made.dataFiles().get(i).tensors();
      assertThat(parts).hasSize(1 + tensors.size());
      for (int j = 0; j < tensors.size(); j++) {
        assertThat(parts.get(1 + j))
            .isEqualTo(Crc32c.of(MemorySegment.ofArray(bytes(tensors.get(j).source()))));
      }
    }
  }

  private static byte[] bytes(Source source) {
    if (source instanceof Memory.OnHost(MemorySegment segment)) {
      return segment.toArray(ValueLayout.JAVA_BYTE);
    }
    throw new IllegalArgumentException("no memory of the CPU: " + source);
  }

  @Property
  void shardsAreFullButNotFuller(
      @ForAll("tensors") List<NewTensor> tensors,
      @ForAll @LongRange(min = 1, max = 1000) long fileBytes) {
    List<NewDataFile> dataFiles =
        NewSafetensors.folder(
                folder, tensors, Map.of(), DataFileOptions.defaults().withFileBytes(fileBytes))
            .dataFiles();
    Map<String, NewDataFile> places = new HashMap<>();
    for (NewDataFile dataFile : dataFiles) {
      assertThat(dataFile.dataBytes() <= fileBytes || dataFile.tensors().size() == 1)
          .as("%s bytes in a data file of %s", dataFile.dataBytes(), fileBytes)
          .isTrue();
      dataFile.tensors().forEach(tensor -> places.put(tensor.name(), dataFile));
    }
    // The tensors keep the given order from data file to data file, and a new data file begins
    // only when the one before is full.
    for (int i = 1; i < tensors.size(); i++) {
      NewDataFile before = places.get(tensors.get(i - 1).name());
      NewDataFile here = places.get(tensors.get(i).name());
      assertThat(before).isNotNull();
      assertThat(here).isNotNull();
      int step = dataFiles.indexOf(here) - dataFiles.indexOf(before);
      assertThat(step).isBetween(0, 1);
      if (step == 1) {
        assertThat(before.dataBytes() + tensors.get(i).source().length()).isGreaterThan(fileBytes);
      }
    }
  }

  @Property(tries = 200)
  void theOrderThatFillsOneFileDoesNotMatter(
      @ForAll("tensors") List<NewTensor> tensors,
      @ForAll("notes") Map<String, String> notes,
      @ForAll Random random) {
    List<NewTensor> shuffled = new ArrayList<>(tensors);
    Collections.shuffle(shuffled, random);
    Map<String, String> reversed = new LinkedHashMap<>();
    new TreeMap<>(notes).descendingMap().forEach(reversed::put);
    assertThat(header(shuffled, reversed)).isEqualTo(header(tensors, notes));
  }

  private byte[] header(List<NewTensor> tensors, Map<String, String> notes) {
    NewDataFile dataFile =
        NewSafetensors.file(folder.resolve("x"), tensors, notes).dataFiles().getFirst();
    return bytes(dataFile.file().parts().getFirst());
  }
}
