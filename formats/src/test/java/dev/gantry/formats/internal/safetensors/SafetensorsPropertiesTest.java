// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

class SafetensorsPropertiesTest {
  private static Path file = Path.of("");

  record Made(String name, DType dtype, List<Integer> shape) {
    long[] dimensions() {
      return shape.stream().mapToLong(Integer::longValue).toArray();
    }
  }

  @BeforeContainer
  static void makeFile() throws IOException {
    file = Files.createTempFile("gantry", ".safetensors");
  }

  @AfterContainer
  static void deleteFile() throws IOException {
    Files.delete(file);
  }

  /// Returns layouts whose last dimensions are 4, so that every dtype ends with a whole byte.
  @Provide
  Arbitrary<List<Made>> layouts() {
    Arbitrary<String> names =
        Arbitraries.strings().ofMaxLength(12).filter(SafetensorsPropertiesTest::isText);
    Arbitrary<List<Integer>> shapes =
        Arbitraries.integers()
            .between(0, 5)
            .list()
            .ofMaxSize(4)
            .map(some -> {
              List<Integer> shape = new ArrayList<>(some);
              shape.add(4);
              return shape;
            });
    return Combinators.combine(names, Arbitraries.of(DType.class), shapes)
        .as(Made::new)
        .list()
        .ofMaxSize(20)
        .uniqueElements(Made::name);
  }

  @Property
  void whatIsWrittenIsRead(@ForAll("layouts") List<Made> layout, @ForAll long seed) {
    HandmadeSafetensors writer = new HandmadeSafetensors();
    layout.forEach(made -> writer.tensor(made.name(), made.dtype(), made.dimensions()));
    SafetensorsHeader header = read(writer.shuffle(new Random(seed)).toBytes());
    assertThat(header.tensors().keySet())
        .containsExactlyInAnyOrderElementsOf(layout.stream().map(Made::name).toList());
    for (Made made : layout) {
      StoredTensor tensor = header.tensors().get(made.name());
      assertThat(tensor).isNotNull();
      assertThat(tensor.dtype()).isEqualTo(made.dtype());
      assertThat(tensor.shape().toArray()).isEqualTo(made.dimensions());
    }
    long position = header.dataStart();
    for (StoredTensor tensor : header.tensors().values()) {
      assertThat(tensor.extent().offset()).isEqualTo(position);
      position = tensor.extent().end();
    }
    assertThat(position).isEqualTo(header.fileLength());
  }

  @Property
  void rowsAreThatPartOfTheBytes(
      @ForAll DType dtype,
      @ForAll @IntRange(max = 9) int rows,
      @ForAll @IntRange(max = 9) int one,
      @ForAll @IntRange(max = 9) int other) {
    byte[] bytes = new HandmadeSafetensors().tensor("t", dtype, rows, 3, 4).toBytes();
    StoredTensor tensor = read(bytes).tensors().firstEntry().getValue();
    int from = Math.min(rows, Math.min(one, other));
    int to = Math.min(rows, Math.max(one, other));
    if (from * 12L * dtype.bits() % 8 != 0 || to * 12L * dtype.bits() % 8 != 0) {
      return;
    }
    StoredTensor part = tensor.rows(from, to);
    Extent whole = tensor.extent();
    long rowBits = 12L * dtype.bits();
    assertThat(part.extent())
        .isEqualTo(
            new Extent(
                whole.file(), whole.offset() + from * rowBits / 8, (to - from) * rowBits / 8));
    assertThat(part.shape().toArray()).containsExactly(to - from, 3, 4);
  }

  private static boolean isText(String name) {
    return IntStream.range(0, name.length()).noneMatch(i -> Character.isSurrogate(name.charAt(i)))
        && !name.equals("__metadata__");
  }

  private static SafetensorsHeader read(byte[] bytes) {
    try {
      return SafetensorsHeader.read(GantrySession.shared(), Files.write(file, bytes));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
