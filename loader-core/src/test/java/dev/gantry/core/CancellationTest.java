// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("jdk-files")
class CancellationTest {
  private final Cancellation cancellation = new Cancellation();
  private final List<String> heard = new ArrayList<>();

  @Test
  void everybodyHearsOnceWhoHasNotAskedToBeForgotten() {
    Runnable _ = cancellation.whenCancelled(() -> heard.add("first"));
    Runnable forget = cancellation.whenCancelled(() -> heard.add("second"));
    Runnable _ = cancellation.whenCancelled(() -> heard.add("third"));
    forget.run();
    assertThat(heard).isEmpty();
    cancellation.cancel();
    cancellation.cancel();
    assertThat(heard).containsExactly("first", "third");
  }

  @Test
  void whoeverComesLaterHearsAtOnce() {
    cancellation.cancel();
    cancellation.whenCancelled(() -> heard.add("late")).run();
    assertThat(heard).containsExactly("late");
    assertThat(cancellation.isCancelled()).isTrue();
  }

  /// A load whose listener is not called would continue to wait.
  @Test
  void everybodyHearsThoughSomeThrow() {
    IllegalStateException own = new IllegalStateException("own");
    Runnable _ =
        cancellation.whenCancelled(() -> {
          throw own;
        });
    Runnable _ = cancellation.whenCancelled(() -> heard.add("second"));
    assertThatThrownBy(cancellation::cancel).isSameAs(own);
    assertThat(heard).containsExactly("second");
  }
}
