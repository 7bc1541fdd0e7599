// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.harness.RandomCheckpoint;
import java.io.IOException;
import java.nio.file.Path;

/// Makes a safetensors file of random bytes: `MakeCheckpoint FILE BYTES TENSORS [DTYPE]`.
public final class MakeCheckpoint {
  private MakeCheckpoint() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length < 3) {
      System.err.println("usage: MakeCheckpoint FILE BYTES TENSORS [BF16|F32]");
      System.exit(64);
    }
    var _ =
        RandomCheckpoint.make(
            Path.of(arguments[0]),
            Long.parseLong(arguments[1]),
            Integer.parseInt(arguments[2]),
            arguments.length > 3 ? arguments[3] : "BF16");
  }
}
