// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;

/// DJL's optimizers with the settings of common trainings.
public final class Optimizers {
  /// The step around which learning rates change.
  public static final int TURN = 6;

  private Optimizers() {}

  public static Optimizer adam() {
    return Optimizer.adam().optLearningRateTracker(Tracker.fixed(0.01f)).build();
  }

  public static Stream<Named<Supplier<Optimizer>>> all() {
    return Stream.of(
        Named.of("adam", Optimizers::adam),
        Named.of(
            "adam with warm up",
            () ->
                Optimizer.adam()
                    .optLearningRateTracker(
                        Tracker.warmUp()
                            .optWarmUpSteps(TURN + 2)
                            .optWarmUpBeginValue(0.001f)
                            .setMainTracker(Tracker.fixed(0.02f))
                            .build())
                    .build()),
        Named.of("adam w", () -> Optimizer.adamW().optWeightDecays(0.1f).build()),
        Named.of("sgd", () -> Optimizer.sgd().setLearningRateTracker(Tracker.fixed(0.1f)).build()),
        Named.of(
            "sgd with factors",
            () ->
                Optimizer.sgd()
                    .setLearningRateTracker(
                        Tracker.multiFactor()
                            .setBaseValue(0.3f)
                            .setSteps(new int[] {TURN - 2, TURN, TURN + 3})
                            .optFactor(0.3f)
                            .build())
                    .build()),
        Named.of(
            "sgd with momentum",
            () ->
                Optimizer.sgd()
                    .setLearningRateTracker(Tracker.fixed(0.1f))
                    .optMomentum(0.9f)
                    .build()),
        Named.of(
            "sgd that begins late",
            () ->
                Optimizer.sgd()
                    .setLearningRateTracker(
                        Tracker.factor().setBaseValue(0.5f).setFactor(0.8f).build())
                    .optBeginNumUpdate(3)
                    .build()),
        Named.of(
            "nag",
            () ->
                Optimizer.nag()
                    .setLearningRateTracker(Tracker.fixed(0.1f))
                    .setMomentum(0.9f)
                    .build()),
        Named.of("rms prop", () -> Optimizer.rmsprop().optCentered(false).build()),
        Named.of("rms prop centered", () -> Optimizer.rmsprop().optCentered(true).build()),
        Named.of(
            "adagrad",
            () -> Optimizer.adagrad().optLearningRateTracker(Tracker.fixed(0.1f)).build()),
        Named.of("adadelta", () -> Optimizer.adadelta().optRho(0.9f).optEpsilon(1e-4f).build()));
  }
}
