// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.texts;

/// Measures how similar two vectors of the same length are; higher is more similar.
public enum Similarity {
  COSINE,
  DOT,
  EUCLIDEAN,
  MANHATTAN;

  public double of(float[] first, float[] second) {
    double product = 0;
    double squares = 0;
    double others = 0;
    double straight = 0;
    double sum = 0;
    for (int i = 0; i < first.length; i++) {
      double difference = (double) first[i] - second[i];
      product += (double) first[i] * second[i];
      squares += (double) first[i] * first[i];
      others += (double) second[i] * second[i];
      straight += difference * difference;
      sum += Math.abs(difference);
    }
    return switch (this) {
      case COSINE -> product / Math.max(Math.sqrt(squares) * Math.sqrt(others), 1e-12);
      case DOT -> product;
      case EUCLIDEAN -> -Math.sqrt(straight);
      case MANHATTAN -> -sum;
    };
  }
}
