// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.training.ParameterServer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;

/// Wraps the parameter server that makes a trainer's steps, and delays updates of parameters while
/// a snapshot of the training is being taken. Forward and backward passes go on meanwhile.
///
/// Only the thread that steps the trainer may use it.
public final class UpdateFence implements ParameterServer {
  private ParameterServer real;
  private final Queue<CompletableFuture<?>> held = new ArrayDeque<>();
  private final List<AfterStep> afterSteps = new ArrayList<>();

  private static final class AfterStep {
    private final Runnable action;
    private int updatesLeft;

    private AfterStep(int updates, Runnable action) {
      this.updatesLeft = updates;
      this.action = action;
    }
  }

  UpdateFence(ParameterServer real) {
    this.real = real;
  }

  /// The parameter server behind the fence.
  ParameterServer real() {
    return real;
  }

  void setReal(ParameterServer other) {
    real = other;
  }

  /// Delays updates until the snapshot has completed or failed.
  public void hold(CompletableFuture<?> snapshot) {
    held.add(snapshot);
  }

  /// Has `action` run once, within the next step, after `updates` parameters have been updated.
  public void afterUpdates(int updates, Runnable action) {
    afterSteps.add(new AfterStep(updates, action));
  }

  @Override
  public void init(String parameter, NDArray[] values) {
    real.init(parameter, values);
  }

  @Override
  public void update(String parameter, NDArray[] gradients, NDArray[] values) {
    for (CompletableFuture<?> next = held.poll(); next != null; next = held.poll()) {
      next.handle((_, _) -> true).join();
    }
    real.update(parameter, gradients, values);
    List<Runnable> due = new ArrayList<>();
    afterSteps.removeIf(each -> {
      each.updatesLeft--;
      return each.updatesLeft == 0 && due.add(each.action);
    });
    due.forEach(Runnable::run);
  }

  @Override
  public void close() {
    real.close();
  }
}
