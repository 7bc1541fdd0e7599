// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.weights.TensorValues;
import dev.gantry.formats.internal.weights.WeightsFormatContract;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class NpyFormatTest {
  @Nested
  class Plain extends OneArray {
    Plain() {
      super(false, false);
    }
  }

  @Nested
  class FortranOrderBigEndian extends OneArray {
    FortranOrderBigEndian() {
      super(true, true);
    }
  }

  /// Arrays of each number of axes, which are read from the file in several pieces.
  @Test
  void largeArraysInFortranOrderComeInC(@TempDir Path folder) throws IOException {
    for (long[] shape :
        new long[][] {{3000, 700}, {7, 3000, 90}, {1, 2_000_000}, {5, 1, 400_001}}) {
      Random random = new Random(9);
      WeightsFormatContract.Given given = WeightsFormatContract.given(random, DType.F32, shape);
      for (boolean bigEndian : new boolean[] {false, true}) {
        Path file = folder.resolve("large.npy");
        Files.write(
            file, HandmadeNpy.array(given.dtype(), given.shape(), given.bytes(), true, bigEndian));
        StoredTensor tensor =
            WeightsFormats.open(GantrySession.shared(), Location.of(file)).tensors().get("large");
        assertThat(Arrays.equals(TensorValues.bytes(tensor), given.bytes())).isTrue();
        StoredTensor rows = tensor.rows(shape[0] / 2, shape[0]);
        byte[] expected =
            Arrays.copyOfRange(
                given.bytes(), (int) (given.bytes().length - rows.bytes()), given.bytes().length);
        assertThat(Arrays.equals(TensorValues.bytes(rows), expected)).isTrue();
      }
    }
  }

  @Test
  void headersOfOtherPythonsAreRead(@TempDir Path folder) throws IOException {
    for (String header :
        new String[] {
          "{'shape': (2L, 3L), 'fortran_order': False, 'descr': '<i2'}",
          "{\"descr\": \"<i2\",\n\t\"fortran_order\" : False , \"shape\":(2 ,3,) , }",
        }) {
      Path file = Files.write(folder.resolve("a.npy"), HandmadeNpy.file(header, new byte[12]));
      StoredTensor tensor =
          WeightsFormats.open(GantrySession.shared(), Location.of(file)).tensors().get("a");
      assertThat(tensor.shape()).isEqualTo(TensorShape.of(2, 3));
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      value = {
        "'<c16' ; unknown-dtype",
        "'<f16' ; unknown-dtype",
        "'f4' ; unknown-dtype",
        "'=f4' ; unknown-dtype",
        "'<V2' ; structured-dtype",
        "'|S3' ; text-dtype",
        "'<M8[ns]' ; time-dtype",
        "'' ; unknown-dtype",
        "('<f4', (2,)) ; structured-dtype",
        "'<f\\x34' ; not-a-literal",
        "u'<f4' ; not-a-literal",
        "'<f4 ; not-a-literal",
        "None ; not-a-literal",
        "'<f4', 'descr': '<f4' ; duplicate-key",
        "'<f4', 'shape': (3) ; duplicate-key",
        "'<f4'}{ ; not-a-literal",
        "'<f4' 'x' ; not-a-literal"
      })
  void aTypeThatIsNotReadHasItsFault(String descr, String kind, @TempDir Path folder)
      throws IOException {
    String header = "{'shape': (3,), 'fortran_order': False, 'descr': " + descr + "}";
    Path file = Files.write(folder.resolve("a.npy"), HandmadeNpy.file(header, new byte[12]));
    assertThatThrownBy(() -> WeightsFormats.open(GantrySession.shared(), Location.of(file)))
        .isInstanceOfSatisfying(
            MalformedFileException.class, fault -> assertThat(fault.kind()).isEqualTo(kind));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "3",
        "(3)",
        "[3]",
        "(3,,)",
        "(,)",
        "(3 4)",
        "(True,)",
        "(0x3,)",
        "(3.,)",
        "(3e0,)",
        "(1_0,)",
        "(+3,)",
        "(3",
        "(3, 'a')"
      })
  void aShapeThatIsNoneIsRefused(String shape, @TempDir Path folder) throws IOException {
    String header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}";
    Path file = Files.write(folder.resolve("a.npy"), HandmadeNpy.file(header, new byte[12]));
    assertThatThrownBy(() -> WeightsFormats.open(GantrySession.shared(), Location.of(file)))
        .isInstanceOfSatisfying(
            MalformedFileException.class,
            fault -> assertThat(fault.kind()).isEqualTo("invalid-shape"));
  }

  abstract static class OneArray extends WeightsFormatContract {
    private final boolean fortran;
    private final boolean bigEndian;

    OneArray(boolean fortran, boolean bigEndian) {
      this.fortran = fortran;
      this.bigEndian = bigEndian;
    }

    @Override
    protected String format() {
      return "NumPy";
    }

    @Override
    protected String variant() {
      return "npy";
    }

    /// The contract renames the file to this name, and the file's name gives the tensor its name.
    @Override
    protected String fileName() {
      return "renamed";
    }

    @Override
    protected Map<String, Given> tensors() {
      return Map.of("renamed", given(new Random(3), DType.C64, 9, 4, 5));
    }

    @Override
    protected void write(Path file, Map<String, Given> tensors) throws IOException {
      Given given = tensors.get("renamed");
      Files.write(
          file, HandmadeNpy.array(given.dtype(), given.shape(), given.bytes(), fortran, bigEndian));
    }
  }

  @ParameterizedTest
  @CsvSource({"64, true", "65, false"})
  void anArrayHasAtMostAsManyAxesAsInNumpy(int axes, boolean isRead, @TempDir Path folder)
      throws IOException {
    String header =
        "{'descr': '|u1', 'fortran_order': False, 'shape': (" + "1,".repeat(axes) + ")}";
    Path file = Files.write(folder.resolve("a.npy"), HandmadeNpy.file(header, new byte[1]));
    if (isRead) {
      assertThat(WeightsFormats.open(GantrySession.shared(), Location.of(file)).tensors().get("a"))
          .returns(axes, tensor -> tensor.shape().rank());
    } else {
      assertThatThrownBy(() -> WeightsFormats.open(GantrySession.shared(), Location.of(file)))
          .hasMessageContaining("too-many-axes");
    }
  }
}
