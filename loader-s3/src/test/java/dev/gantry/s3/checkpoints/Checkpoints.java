// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.checkpoints;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// Makes checkpoints whose bytes follow from their step. They have two data files, of which one
/// is uploaded in parts.
final class Checkpoints {
  static final long FILE_BYTES = 13 << 20;

  private Checkpoints() {}

  static UnsavedCheckpoint of(long step) {
    SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
    groups.put(
        "model",
        List.of(tensor("large", step, 12_500_000), tensor("small", step + 1_000, 1_200_000)));
    return new UnsavedCheckpoint(step, groups, Map.of(), Map.of(), Map.of());
  }

  private static NewTensor tensor(String name, long seed, int bytes) {
    return new NewTensor(
        name,
        DType.U8,
        TensorShape.of(bytes),
        new Memory.OnHost(MemorySegment.ofArray(TestFiles.bytes(seed, bytes))));
  }

  static void requireWhole(GantrySession session, CheckpointFolder stored) {
    SequencedMap<String, StoredTensor> tensors = stored.open("model").tensors();
    assertThat(tensors.keySet()).containsExactlyInAnyOrder("large", "small");
    for (NewTensor tensor :
        Optional.ofNullable(of(stored.step()).groups().get("model")).orElseThrow()) {
      StoredTensor found = Optional.ofNullable(tensors.get(tensor.name())).orElseThrow();
      int sum = session.checksum(new Source.FilePart(found.extent()));
      assertThat(sum).isEqualTo(session.checksum(tensor.source()));
      stored.check(found, sum);
    }
  }
}
