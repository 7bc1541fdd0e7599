// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import dev.gantry.core.MisuseException;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The user's own states, which `CheckpointSaver.Builder#optState` adds. Immutable.
public record UserStates(SequencedMap<String, Access> accesses) {
  private static final Logger LOG = LoggerFactory.getLogger(UserStates.class);

  public UserStates {
    accesses = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(accesses));
  }

  /// Reads and sets one state.
  public record Access(Supplier<String> save, Consumer<String> restore) {}

  /// Adds a state to those that a saver is built with.
  ///
  /// @throws MisuseException if there is a state of that name
  public static void add(
      Map<String, Access> states, String name, Supplier<String> save, Consumer<String> restore) {
    MisuseException.requireGiven("name of optState", name);
    MisuseException.requireGiven("save of optState", save);
    MisuseException.requireGiven("restore of optState", restore);
    if (states.putIfAbsent(name, new Access(save, restore)) != null) {
      throw new MisuseException("optState is given twice for '" + name + "'");
    }
  }

  /// The states now, as entries of [SavedState].
  SequencedMap<String, String> save() {
    SequencedMap<String, String> entries = new LinkedHashMap<>();
    accesses.forEach((name, access) -> {
      String value = access.save().get();
      if (value == null) {
        throw new MisuseException("optState '" + name + "' must save a text (was null)");
      }
      entries.put(SavedState.USER + name, value);
    });
    return entries;
  }

  /// @param saved the saved states by their names
  /// @param place the place where they were saved, for the log
  public void restore(Map<String, String> saved, Object place) {
    accesses.forEach((name, access) -> {
      String value = saved.get(name);
      if (value == null) {
        LOG.warn("{} has no state '{}', which optState names; it stays as it is", place, name);
      } else {
        access.restore().accept(value);
      }
    });
    saved.keySet().stream()
        .filter(name -> !accesses.containsKey(name))
        .forEach(name ->
            LOG.warn("{} has the state '{}', which no optState names; it is ignored", place, name));
  }
}
