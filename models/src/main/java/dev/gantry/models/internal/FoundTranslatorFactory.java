// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal;

import ai.djl.Model;
import ai.djl.modality.Input;
import ai.djl.translate.ServingTranslatorFactory;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorFactory;
import ai.djl.util.Pair;
import dev.gantry.models.TextTranslatorFactory;
import java.lang.reflect.Type;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/// The translators for `Criteria` that name none. DJL Serving's inputs are left to DJL, which has rules of its own for
/// them.
public final class FoundTranslatorFactory implements TranslatorFactory {
  private final TextTranslatorFactory texts = new TextTranslatorFactory();

  @Override
  public Set<Pair<Type, Type>> getSupportedTypes() {
    return texts.getSupportedTypes();
  }

  @Override
  public <I, O> Translator<I, O> newInstance(
      Class<I> input, Class<O> output, Model model, Map<String, ?> arguments)
      throws TranslateException {
    if (input != Input.class) {
      return texts.newInstance(input, output, model, arguments);
    }
    Map<String, Object> others = new HashMap<>(arguments);
    others.remove("translatorFactory");
    return new ServingTranslatorFactory().newInstance(input, output, model, others);
  }
}
