package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// What a training keeps outside of model, optimizer and dataset, by the names that
/// [CheckpointSaver.Builder#optState] was given. Immutable.
record UserStates(SequencedMap<String, Access> accesses) {
  private static final Logger LOG = LoggerFactory.getLogger(UserStates.class);

  UserStates {
    accesses = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(accesses));
  }

  /// How a state is taken, and put back.
  record Access(Supplier<String> save, Consumer<String> restore) {}

  /// The states as they are now, by their names.
  SequencedMap<String, String> values() {
    SequencedMap<String, String> values = new LinkedHashMap<>();
    accesses.forEach((name, access) -> {
      String value = access.save().get();
      if (value == null) {
        throw new MisuseException("optState '" + name + "' is saved as null; it must be a text");
      }
      values.put(name, value);
    });
    return values;
  }

  /// @param saved by their names
  /// @param place where they were saved, for the log
  void restore(Map<String, String> saved, Object place) {
    accesses.forEach((name, access) -> {
      String value = saved.get(name);
      if (value == null) {
        LOG.warn("{} has no state '{}', which optState names: it stays as it is", place, name);
      } else {
        access.restore().accept(value);
      }
    });
    saved.keySet().stream()
        .filter(name -> !accesses.containsKey(name))
        .forEach(name ->
            LOG.warn("{} has the state '{}', which no optState names: it is left", place, name));
  }
}
