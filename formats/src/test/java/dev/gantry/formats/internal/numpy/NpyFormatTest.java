package dev.gantry.formats.internal.numpy;

import dev.gantry.core.DType;
import dev.gantry.formats.internal.weights.WeightsFormatContract;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Nested;

/// Single arrays.
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

    /// So that the tensor has the same name when the file is renamed.
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
}
