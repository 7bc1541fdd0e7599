// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.formats.internal.weights.WeightsFormatContract;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Nested;

/// Archives of arrays in every order of axes and bytes, stored and deflated.
class NpzFormatTest {
  @Nested
  class Stored extends Archive {
    Stored() {
      super(false, false, false);
    }
  }

  @Nested
  class StoredInFortranOrder extends Archive {
    StoredInFortranOrder() {
      super(false, true, false);
    }
  }

  @Nested
  class StoredBigEndian extends Archive {
    StoredBigEndian() {
      super(false, false, true);
    }
  }

  @Nested
  class Deflated extends Archive {
    Deflated() {
      super(true, false, false);
    }
  }

  @Nested
  class DeflatedInFortranOrderBigEndian extends Archive {
    DeflatedInFortranOrderBigEndian() {
      super(true, true, true);
    }
  }

  abstract static class Archive extends WeightsFormatContract {
    private final boolean deflated;
    private final boolean fortran;
    private final boolean bigEndian;

    Archive(boolean deflated, boolean fortran, boolean bigEndian) {
      this.deflated = deflated;
      this.fortran = fortran;
      this.bigEndian = bigEndian;
    }

    @Override
    protected String format() {
      return "NumPy";
    }

    @Override
    protected String variant() {
      return "npz";
    }

    @Override
    protected String fileName() {
      return "arrays.npz";
    }

    @Override
    protected void write(Path file, Map<String, Given> tensors) throws IOException {
      Map<String, byte[]> members = new LinkedHashMap<>();
      tensors.forEach((name, given) ->
          members.put(
              name + ".npy",
              HandmadeNpy.array(given.dtype(), given.shape(), given.bytes(), fortran, bigEndian)));
      HandmadeNpy.writeArchive(file, members, deflated);
    }
  }
}
