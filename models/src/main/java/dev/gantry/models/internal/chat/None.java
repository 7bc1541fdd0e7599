// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import com.hubspot.jinjava.interpret.JinjavaInterpreter;
import com.hubspot.jinjava.lib.exptest.IsNoneExpTest;
import com.hubspot.jinjava.objects.PyWrapper;
import com.hubspot.jinjava.util.HasObjectTruthValue;
import org.jspecify.annotations.Nullable;

/// Python's `None`. It is a value, and an undefined variable does not equal it, while Jinjava has
/// one null for both.
final class None implements PyWrapper, HasObjectTruthValue {
  static final None NONE = new None();

  private None() {}

  @Override
  public boolean getObjectTruthValue() {
    return false;
  }

  @Override
  public String toString() {
    return "None";
  }

  /// The test `is none`.
  static final class Test extends IsNoneExpTest {
    @Override
    public boolean evaluate(
        @Nullable Object value, JinjavaInterpreter interpreter, Object... arguments) {
      return value == NONE;
    }
  }
}
