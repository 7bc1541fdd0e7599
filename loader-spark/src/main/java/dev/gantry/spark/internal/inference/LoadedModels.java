// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.inference;

import ai.djl.Device;
import ai.djl.Model;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The models in this JVM, one for each plan and device. Tasks that run at the same time share a
/// model. A model stays loaded for a minute after its last task.
public final class LoadedModels {
  private static final Logger LOG = LoggerFactory.getLogger(LoadedModels.class);

  /// How long an unused model is kept, so that it is not loaded again between two waves of a job's
  /// tasks.
  private static final Duration KEPT = Duration.ofMinutes(1);

  private static final Map<Key, Entry> ENTRIES = new HashMap<>();

  private LoadedModels() {}

  record Key(UUID id, Device device) {}

  /// A model and the number of its users. [#ENTRIES] guards the users; the entry's own lock guards
  /// the model.
  static final class Entry {
    private final Key key;
    private int users;
    private long lastUse;
    private @Nullable Model model;

    Entry(Key key) {
      this.key = key;
    }

    /// Loads the model unless another task has loaded it. After a failure, the next task tries
    /// again.
    synchronized Model load(InferencePlan plan) {
      Model loaded = model;
      if (loaded == null) {
        long start = System.nanoTime();
        try {
          loaded =
              MisuseException.requireGiven(
                  "the model of setModel's function", plan.loader().load(key.device()));
        } catch (RuntimeException e) {
          throw e;
        } catch (Exception e) {
          throw new IllegalStateException("the model cannot be loaded: " + e.getMessage(), e);
        }
        model = loaded;
        LOG.info(
            "loaded a model onto {} in {} ms",
            key.device(),
            TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
      }
      return loaded;
    }

    synchronized void close() {
      if (model != null) {
        model.close();
        model = null;
      }
    }
  }

  /// A task's use of a model, which the task closes once.
  record Use(Entry entry, Model model) implements AutoCloseable {
    @Override
    public void close() {
      giveBack(entry);
    }
  }

  /// Returns a use of the model. If another task is loading it, this waits.
  static Use use(InferencePlan plan, Device device) {
    Entry entry;
    synchronized (ENTRIES) {
      entry = ENTRIES.computeIfAbsent(new Key(plan.id(), device), Entry::new);
      entry.users++;
    }
    return Cleanup.orUndo(() -> new Use(entry, entry.load(plan)), () -> giveBack(entry));
  }

  private static void giveBack(Entry entry) {
    synchronized (ENTRIES) {
      entry.users--;
      entry.lastUse = System.nanoTime();
    }
    CompletableFuture.delayedExecutor(KEPT.toMillis() + 1, TimeUnit.MILLISECONDS)
        .execute(() -> closeIf(entry, KEPT.toNanos()));
  }

  /// Closes a model that no task has used for this long.
  private static void closeIf(Entry entry, long unusedNanos) {
    synchronized (ENTRIES) {
      if (entry.users > 0
          || System.nanoTime() - entry.lastUse < unusedNanos
          || !ENTRIES.remove(entry.key, entry)) {
        return;
      }
    }
    entry.close();
  }

  /// Closes at once all unused instances of a model.
  public static void free(UUID id) {
    List<Entry> all;
    synchronized (ENTRIES) {
      all = new ArrayList<>(ENTRIES.values());
    }
    all.stream().filter(entry -> entry.key.id().equals(id)).forEach(entry -> closeIf(entry, 0));
  }
}
