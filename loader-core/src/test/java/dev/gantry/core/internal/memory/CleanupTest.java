// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CleanupTest {
  private final List<String> undone = new ArrayList<>();
  private final IllegalStateException failure = new IllegalStateException("work");
  private final OutOfMemoryError besides = new OutOfMemoryError("undo");

  private String fail(String what) {
    undone.add("work with " + what);
    throw failure;
  }

  private void failToUndo(String what) {
    undone.add("undo " + what);
    throw besides;
  }

  @Test
  void whatWasTakenIsUndoneAfterAFailureAndThatOfUndoingIsSuppressed() {
    assertThatThrownBy(() -> Cleanup.orUndo(() -> "file", this::fail, this::failToUndo))
        .isSameAs(failure)
        .hasSuppressedException(besides);
    assertThat(undone).containsExactly("work with file", "undo file");
  }

  @Test
  void whatCannotBeTakenIsNotUndone() {
    assertThatThrownBy(() -> Cleanup.orUndo(() -> fail("nothing"), this::fail, this::failToUndo))
        .isSameAs(failure)
        .hasNoSuppressedExceptions();
    assertThat(undone).containsExactly("work with nothing");
  }

  @Test
  void whatSucceedsIsNotUndone() {
    assertThat(Cleanup.orUndo(() -> "file", String::length, this::failToUndo)).isEqualTo(4);
    assertThat(undone).isEmpty();
  }

  @Test
  void eachItemHasItsTurnAndTheFirstFailureHasTheOthers() {
    List<RuntimeException> thrown = List.of(failure, new IllegalArgumentException("second"));
    assertThatThrownBy(() ->
            Cleanup.forEach(
                List.of(0, 1, 2),
                number -> {
                  undone.add("undo " + number);
                  if (number < thrown.size()) {
                    throw thrown.get(number);
                  }
                }))
        .isSameAs(failure)
        .hasSuppressedException(thrown.getLast());
    assertThat(undone).containsExactly("undo 0", "undo 1", "undo 2");
  }
}
