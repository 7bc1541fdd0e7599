// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.UploadFolder;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.extension.ExtendWith;

/// Uploads of several files that are not completed.
@ExtendWith(NoLeaks.class)
class SafetensorsUploadTest {
  private static final int BYTES = 1000;
  private static final List<NewTensor> TENSORS =
      IntStream.range(0, 3)
          .mapToObj(i ->
              new NewTensor(
                  "layer." + i,
                  DType.U8,
                  TensorShape.of(BYTES),
                  new Memory.OnHost(MemorySegment.ofArray(new byte[BYTES]))))
          .toList();

  private String bucket;
  private Location.Remote target;

  @BeforeEach
  void nameTheFolder(TestInfo test) {
    bucket = test.getTestMethod().orElseThrow().getName();
    target = (Location.Remote) Location.of("memory://" + bucket + "/weights");
  }

  @AfterEach
  void obey() {
    MemoryStore.beforeEachWrite(null);
  }

  private void upload(int tensorsInAFile) {
    try (GantrySession session = GantrySession.open()) {
      SafetensorsUpload upload = new SafetensorsUpload(session, target, false);
      try (UploadFolder folder = UploadFolder.make()) {
        var _ =
            upload.upload(
                folder,
                NewSafetensors.folder(
                    folder.path(),
                    TENSORS,
                    Map.of(),
                    DataFileOptions.defaults().withFileBytes((long) tensorsInAFile * BYTES)),
                WriteOptions.defaults());
      }
    }
  }

  private List<String> names() {
    return MemoryStore.names(bucket + "/weights");
  }

  private static TransferException cancelled() {
    return new TransferException("PUT", "an object", new Failure.Cancelled());
  }

  @Test
  void whatAnInterruptedThreadHasUploadedIsRemoved() {
    MemoryStore.beforeEachWrite(call -> {
      if (call.equals("upload model-00002-of-00003.safetensors")) {
        Thread.currentThread().interrupt();
      }
      // Stores fail on an interrupted thread in the same way.
      if (Thread.currentThread().isInterrupted()) {
        throw cancelled();
      }
    });
    try {
      assertThatThrownBy(() -> upload(1)).isInstanceOf(TransferException.class);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
    assertThat(names()).isEmpty();
  }

  @Test
  void aFileIsRemovedAlthoughTheStoresAnswerWasLost() {
    String name = "model-00002-of-00003.safetensors";
    MemoryStore.beforeEachWrite(call -> {
      if (call.equals("upload " + name)) {
        Location _ = MemoryStore.put(bucket + "/weights/" + name, new byte[BYTES]);
        throw cancelled();
      }
    });
    assertThatThrownBy(() -> upload(1)).isInstanceOf(TransferException.class);
    assertThat(names()).isEmpty();
  }

  /// Simulates the end of the process at a call: no later call has an effect.
  private void uploadUntil(String last) {
    boolean[] dead = {false};
    MemoryStore.beforeEachWrite(call -> {
      dead[0] |= call.equals(last);
      if (dead[0]) {
        throw new IllegalStateException("killed");
      }
    });
    assertThatThrownBy(() -> upload(1)).isInstanceOf(IllegalStateException.class);
    MemoryStore.beforeEachWrite(null);
  }

  @Test
  void theNextUploadTakesThePlaceOfAKilledOne() {
    uploadUntil("upload model-00003-of-00003.safetensors");
    assertThat(names())
        .containsExactly(
            "gantry-upload",
            "model-00001-of-00003.safetensors",
            "model-00002-of-00003.safetensors");

    upload(2);

    assertThat(names())
        .containsExactly(
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json");
  }

  @Test
  void filesThatNoUploadNamesAreRefusedAndStay() {
    uploadUntil("upload model-00002-of-00003.safetensors");
    Location _ = MemoryStore.put(bucket + "/weights/model-00002-of-00003.safetensors", new byte[7]);
    List<String> before = names();

    assertThatThrownBy(() -> upload(1))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("holds weights already: model-00002-of-00003.safetensors");

    assertThat(names()).isEqualTo(before);
  }

  @Test
  void anUploadWhoseFolderAnotherHasTakenFailsAndLeavesTheOthersFiles() {
    boolean[] taken = {false};
    MemoryStore.beforeEachWrite(call -> {
      if (call.equals("upload model-00001-of-00003.safetensors") && !taken[0]) {
        taken[0] = true;
        upload(1);
      }
    });
    assertThatThrownBy(() -> upload(1))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining(target.toString());
    assertThat(names()).hasSize(4).contains("model.safetensors.index.json");
  }

  @Test
  void anUploadWhoseFolderAnotherIsUsingFailsAndLeavesItsMark() {
    MemoryStore.beforeEachWrite(call -> {
      if (call.equals("upload model-00001-of-00003.safetensors")) {
        Location _ =
            MemoryStore.put(
                bucket + "/weights/gantry-upload", "another\n".getBytes(StandardCharsets.UTF_8));
      }
    });
    assertThatThrownBy(() -> upload(1))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("another upload has taken this folder");
    assertThat(names()).contains("gantry-upload").doesNotContain("model.safetensors.index.json");
  }
}
