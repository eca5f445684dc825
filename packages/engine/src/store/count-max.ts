// Where counting stops: of more people are told only that there are more.
export const COUNT_MAX = 10_001
