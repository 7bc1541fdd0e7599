// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.djl.Weights;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The demo's check of what was loaded.
class DemoTest {
  @TempDir private Path temporary;

  @AfterEach
  void nothingIsLeft() {
    assertThat(NoLeaks.held()).isEqualTo(LiveResources.Snapshot.NOTHING);
  }

  @Test
  void oneWrongByteIsFound() throws IOException {
    Map<String, String> digests = Demo.makeWeights(temporary, 40_000_000);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(temporary)) {
      NDList arrays = weights.load(manager);
      assertThat(arrays).hasSize(32);
      assertThat(weights.files()).hasSize(4);
      Demo.check(arrays, digests);

      // In the last bytes of the last tensor.
      Path last = temporary.resolve("model-00004-of-00004.safetensors");
      try (FileChannel shard = FileChannel.open(last, StandardOpenOption.WRITE)) {
        shard.write(ByteBuffer.wrap(new byte[] {1, 2, 3}), shard.size() - 3);
      }
      // The first ones refuse a file that changed after its header was read.
      NDList changed = Weights.open(temporary).load(manager);
      assertThatThrownBy(() -> Demo.check(changed, digests))
          .isInstanceOf(CheckFailedException.class)
          .hasMessageContaining("layers.31.weight");
      NDList fewer = new NDList(arrays.subList(0, 3));
      assertThatThrownBy(() -> Demo.check(fewer, digests))
          .hasMessageContaining("3 tensors were loaded, of 32");
    }
  }
}
