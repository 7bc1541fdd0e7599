// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

public class KernelSourceTest {
  /// If this test fails, make-ptx.sh was not run after a change of the source.
  @Test
  void thePtxThatNormalisesWasMadeOfItsSource() throws IOException, NoSuchAlgorithmException {
    requireMade(CudaNormalizer.class, "normalize.cu", "normalize");
  }

  @Test
  void thePtxThatResizesPicturesWasMadeOfItsSource() throws IOException, NoSuchAlgorithmException {
    requireMade(CudaPictures.class, "resample.cu", "resample");
  }

  /// @param beside a class of the package that holds the PTX
  public static void requireMade(Class<?> beside, String sourceName, String name)
      throws IOException, NoSuchAlgorithmException {
    MessageDigest sums = MessageDigest.getInstance("SHA-256");
    for (String each : List.of("copy_piece.cuh", "pieces.cuh", sourceName)) {
      sums.update(Files.readAllBytes(Path.of("src", "main", "cuda", each)));
    }
    String sum = HexFormat.of().formatHex(sums.digest());
    try (InputStream in = Objects.requireNonNull(beside.getResourceAsStream(name + ".ptx"))) {
      assertThat(new String(in.readAllBytes(), StandardCharsets.US_ASCII))
          .startsWith("// Made by make-ptx.sh of " + sourceName + " with SHA-256 " + sum + "\n")
          .contains(".version 6.5\n", ".target sm_75\n", ".entry " + name + "(");
    }
  }
}
